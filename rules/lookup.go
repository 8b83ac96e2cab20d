package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maxLinks = 40 // as many as Linux follows

// lookups returns the directories in which a change can make the absolute path lead to another
// file: the directories of the file and of the symbolic links on the way. If the path leads nowhere,
// the last directory is the one where the way ends. The directories are named without symbolic links.
func lookups(path string) []string {
	var found []string
	note := func(dir string) {
		if !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	dir, rest := root, steps(path)
	for links := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, step)
		info, err := os.Lstat(next)
		if err != nil || len(rest) == 0 {
			note(dir)
		}
		if err != nil {
			break
		}
		if info.Mode()&os.ModeSymlink == 0 {
			dir = next
			continue
		}
		note(dir)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			break
		}
		if filepath.IsAbs(target) {
			dir = filepath.VolumeName(target) + string(filepath.Separator)
		}
		rest = append(steps(target), rest...)
	}
	return found
}

// steps returns the names in a path, one after the other.
func steps(path string) []string {
	path = filepath.ToSlash(path[len(filepath.VolumeName(path)):])
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
}
