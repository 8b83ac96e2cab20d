package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// groups reads the control groups that limit the CPU time of the process. Outside containers most
// machines have none with a limit.
func (l *local) groups() (spent, error) {
	limited := make(spent)
	err := eachGroup(l.files, "cpu", func(v2 bool, dir string) (bool, error) {
		read := accountV1
		if v2 {
			read = accountV2
		}
		a, ok, err := read(l.files, dir)
		if ok && err == nil {
			limited[dir] = a
		}
		return ok, err
	})
	if err != nil {
		return nil, err
	}
	return limited, nil
}

// eachGroup calls visit for the control groups of a controller that the process is in: its own and
// the enclosing ones, up to the root that it can see. visit reports whether the group has a
// limit.
func eachGroup(files fs.FS, controller string, visit func(v2 bool, dir string) (limited bool, err error)) error {
	text, err := fs.ReadFile(files, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel has no control groups
	}
	if err != nil {
		return err
	}
	h, ok := hierarchyOf(string(text), controller)
	if !ok {
		return nil
	}
	for _, root := range h.roots {
		found := false
		for group := h.group; ; group = path.Dir(group) {
			limited, err := visit(h.v2, path.Join(root, group))
			if err != nil {
				return err
			}
			found = found || limited
			if group == "/" {
				break
			}
		}
		if found {
			return nil // the other root is the same under another name
		}
	}
	return nil
}

// hierarchy locates the groups of the process.
type hierarchy struct {
	roots []string // where it may be mounted
	group string   // of the process, relative to the root; in a container perhaps as seen from the machine
	v2    bool
}

// hierarchyOf finds the line of proc/self/cgroup for a controller: number:controllers:group, where
// v2 has the number 0 and no controllers. On a machine with both versions, v1 has the controller if
// its line names it.
func hierarchyOf(text, controller string) (h hierarchy, ok bool) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		group := path.Clean(parts[2])
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == controller {
				return hierarchy{[]string{"sys/fs/cgroup/" + parts[1], "sys/fs/cgroup/" + controller}, group, false}, true
			}
		}
		if parts[0] == "0" && parts[1] == "" {
			h, ok = hierarchy{[]string{"sys/fs/cgroup"}, group, true}, true
		}
	}
	return h, ok
}

// accountV2 reads cpu.max ("25000 100000" or "max 100000", in microseconds) and
// usage_usec in cpu.stat. The root of all groups has no cpu.max.
func accountV2(files fs.FS, dir string) (a account, limited bool, err error) {
	text, ok, err := readAny(files, path.Join(dir, "cpu.max"))
	if err != nil || !ok {
		return a, false, err
	}
	quota, period, _ := strings.Cut(text, " ")
	if quota == "max" {
		return a, false, nil
	}
	if a.cpus, err = ratio(quota, period); err != nil {
		return a, false, fmt.Errorf("%s/cpu.max: %w", dir, err)
	}
	text, ok, err = readAny(files, path.Join(dir, "cpu.stat"))
	if err != nil || !ok {
		return a, false, err
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, "usage_usec "); found {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			a.used = time.Duration(n) * time.Microsecond
			return a, err == nil, err
		}
	}
	return a, false, fmt.Errorf("%s/cpu.stat has no usage_usec", dir)
}

// accountV1 reads cpu.cfs_quota_us (-1 for no limit), cpu.cfs_period_us, and cpuacct.usage, which
// is in nanoseconds and, if the controllers are separate, in another hierarchy.
func accountV1(files fs.FS, dir string) (a account, limited bool, err error) {
	quota, ok, err := readAny(files, path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil || !ok || strings.HasPrefix(quota, "-") {
		return a, false, err
	}
	period, ok, err := readAny(files, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil || !ok {
		return a, false, err
	}
	if a.cpus, err = ratio(quota, period); err != nil {
		return a, false, fmt.Errorf("%s/cpu.cfs_quota_us: %w", dir, err)
	}
	below := strings.TrimPrefix(dir, "sys/fs/cgroup/cpu")
	text, ok, err := readAny(files, path.Join(dir, "cpuacct.usage"), path.Join("sys/fs/cgroup/cpuacct", below, "cpuacct.usage"))
	if err != nil || !ok {
		return a, false, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	a.used = time.Duration(n)
	return a, err == nil, err
}

// ratio returns the number of processors that a quota allows.
func ratio(quota, period string) (float64, error) {
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil {
		return 0, err
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil {
		return 0, err
	}
	if q <= 0 || p <= 0 {
		return 0, fmt.Errorf("%d of %d microseconds is not a CPU share", q, p)
	}
	return float64(q) / float64(p), nil
}

// readAny reads the first of the files that exists, with surrounding space trimmed.
func readAny(files fs.FS, names ...string) (text string, ok bool, err error) {
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err == nil {
			return strings.TrimSpace(string(data)), true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
	}
	return "", false, nil
}
