package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

func (l *local) Memory(int64) (Memory, error) {
	total, err := numberIn(l.files, "proc/meminfo", "MemTotal:")
	if err != nil {
		return Memory{}, err
	}
	if total *= 1024; total <= 0 {
		return Memory{}, errors.New("proc/meminfo has no MemTotal")
	}
	var fullest Memory
	err = eachGroup(l.files, "memory", func(v2 bool, dir string) (limited bool, err error) {
		read := memoryV1
		if v2 {
			read = memoryV2
		}
		m, err := read(l.files, dir)
		if err != nil || m.Limit <= 0 || m.Limit >= total { // v1 writes a huge number if there is no limit
			return false, err
		}
		if m.Share() > fullest.Share() {
			fullest = m
		}
		return true, nil
	})
	if err != nil || fullest.Limit > 0 {
		return fullest, err
	}
	used, err := l.resident()
	return Memory{used, total}, err
}

// resident returns the memory used by this process.
func (l *local) resident() (int64, error) {
	text, err := fs.ReadFile(l.files, "proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text)) // size, resident, ...
	if len(fields) < 2 {
		return 0, fmt.Errorf("proc/self/statm has %d fields, not 2 or more", len(fields))
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("proc/self/statm: %w", err)
	}
	return pages * l.page, nil
}

// memoryV2 reads the limit of a group: memory.max, or memory.high if that is less, because the
// kernel throttles the group to a stop above it. The root of all groups has neither.
func memoryV2(files fs.FS, dir string) (m Memory, err error) {
	for _, name := range []string{"memory.max", "memory.high"} {
		text, ok, err := readAny(files, path.Join(dir, name))
		if err != nil {
			return m, err
		}
		if !ok || text == "max" {
			continue
		}
		limit, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s/%s: %w", dir, name, err)
		}
		if m.Limit == 0 || limit < m.Limit {
			m.Limit = limit
		}
	}
	if m.Limit == 0 {
		return m, nil
	}
	m.Used, err = workingSet(files, dir, "memory.current", "inactive_file")
	return m, err
}

func memoryV1(files fs.FS, dir string) (m Memory, err error) {
	text, ok, err := readAny(files, path.Join(dir, "memory.limit_in_bytes"))
	if err != nil || !ok {
		return m, err
	}
	if m.Limit, err = strconv.ParseInt(text, 10, 64); err != nil {
		return m, fmt.Errorf("%s/memory.limit_in_bytes: %w", dir, err)
	}
	m.Used, err = workingSet(files, dir, "memory.usage_in_bytes", "total_inactive_file")
	return m, err
}

// workingSet returns the memory of a group without the pages of files that were not read lately,
// which the kernel reclaims before it kills a process. Kubernetes calculates it the same way.
func workingSet(files fs.FS, dir, usage, inactive string) (int64, error) {
	text, _, err := readAny(files, path.Join(dir, usage))
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %w", dir, usage, err)
	}
	cached, err := numberIn(files, path.Join(dir, "memory.stat"), inactive+" ")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a sandbox that doesn't report it
	}
	return max(0, used-cached), err
}

// numberIn reads the number after begin at the start of a line. It returns 0 if no line starts with
// begin.
func numberIn(files fs.FS, name, begin string) (int64, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			return n, nil
		}
	}
	return 0, nil
}
