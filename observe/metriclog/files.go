package metriclog

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const indexSuffix = ".idx"

// BaseName returns the prefix of the file names of an application's metric log, by Sentinel's
// rules: in the application's name, dots and characters that don't belong in file names become
// hyphens. A pid of 0 is left out.
func BaseName(app string, pid int) string {
	app = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`./\:*?"<>|`, r) || r <= ' ' {
			return '-'
		}
		return r
	}, app)
	return app + "-metrics.log" + pidSuffix(pid)
}

func pidSuffix(pid int) string {
	if pid == 0 {
		return ""
	}
	return ".pid" + strconv.Itoa(pid)
}

// file is a file of the metric log: the first or a later one of a day.
type file struct {
	path   string
	day    string
	number int
}

var dated = regexp.MustCompile(`^\.(\d{4}-\d{2}-\d{2})(?:\.(\d{1,9}))?$`)

// list returns the files of a metric log, the oldest first.
func list(dir, base string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), base)
		parts := dated.FindStringSubmatch(rest)
		if !ok || parts == nil || e.IsDir() {
			continue
		}
		n, _ := strconv.Atoi(parts[2])
		files = append(files, file{filepath.Join(dir, e.Name()), parts[1], n})
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(strings.Compare(a.day, b.day), cmp.Compare(a.number, b.number))
	})
	return files, nil
}

// next returns the file that follows the existing ones.
func next(files []file, dir, base, day string) file {
	f := file{day: day}
	for _, other := range files {
		if other.day == day {
			f.number = max(f.number, other.number+1)
		}
	}
	name := base + "." + day
	if f.number > 0 {
		name += fmt.Sprintf(".%d", f.number)
	}
	f.path = filepath.Join(dir, name)
	return f
}
