package host

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Local is the machine that the process runs on, as described by Linux's files below root; root is
// "/" except in tests.
//
// Load is the first number of proc/loadavg. It covers the whole machine, even in a container.
//
// CPU is the used share of the available CPU time. If control groups (v1 or v2) limit the CPU, it
// is the time used by all processes of the group divided by the limit: with a quarter of a CPU,
// 0.25 seconds of CPU time per second is full use. If groups are nested, the fullest counts.
// Without such a limit it is the use of the machine or, if that is more, this process's use of the
// processors that it may run on. Short swings are smoothed: each sample counts for one half, and
// the previous value for the other.
//
// Memory is the part that counts towards the limit of a control group (v1 or v2), if one is set:
// the memory of all processes of the group, without pages of files that were not read recently. If
// groups are nested, the fullest counts. Without such a limit it is the memory of this process, as
// a share of the machine's.
//
// Without these files, as on other systems, all three fail.
func Local(root string) Source {
	return &local{files: os.DirFS(root), cpus: runtime.NumCPU(), page: int64(os.Getpagesize()), smooth: unknown}
}

type local struct {
	files fs.FS
	cpus  int
	page  int64 // bytes

	last   spent   // at the last sample; nil before the first
	at     int64   // time of the last sample
	smooth float64 // below 0 before the second
}

func (l *local) Load(int64) (float64, error) {
	text, err := fs.ReadFile(l.files, "proc/loadavg")
	if err != nil {
		return unknown, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || !(load >= 0) {
		return unknown, fmt.Errorf("proc/loadavg begins with %.20q, not with a number", first)
	}
	return load, nil
}

func (l *local) CPU(now int64) (float64, error) {
	if l.last != nil && now <= l.at {
		return l.smooth, nil
	}
	next, err := l.read()
	if err != nil {
		l.last, l.smooth = nil, unknown // not to be compared with later samples
		return unknown, err
	}
	last, passed := l.last, time.Duration(now-l.at)
	l.last, l.at = next, now
	if last == nil {
		return unknown, nil
	}
	use, ok := next.since(last, passed)
	switch {
	case !ok:
	case l.smooth < 0:
		l.smooth = use
	default:
		l.smooth = (l.smooth + use) / 2
	}
	return l.smooth, nil
}

// spent is the CPU time used since some starting point, by where it is accounted.
type spent map[string]account

type account struct {
	used time.Duration
	// cpus is the number of processors to divide used by. 0 means that available has the maximum.
	cpus      float64
	available time.Duration
}

// since returns the use of the fullest account since an earlier time, or false if no account is in
// both.
func (s spent) since(last spent, passed time.Duration) (use float64, ok bool) {
	for name, a := range s {
		before, known := last[name]
		room := a.cpus * passed.Seconds()
		if a.cpus == 0 {
			room = (a.available - before.available).Seconds()
		}
		if known && room > 0 && a.used >= before.used { // a smaller value means a restarted count
			use, ok = max(use, (a.used-before.used).Seconds()/room), true
		}
	}
	return use, ok
}

// read reads the accounts of the groups that limit the process or, if there are none, of the
// machine and the process.
func (l *local) read() (spent, error) {
	groups, err := l.groups()
	if err != nil || len(groups) > 0 {
		return groups, err
	}
	s := make(spent)
	if s["host"], err = l.machine(); err != nil {
		return nil, err
	}
	if s["process"], err = l.process(); err != nil {
		return nil, err
	}
	return s, nil
}

// tick is the unit of time in the files below proc: a hundredth of a second on every machine that
// Go runs on.
const tick = 10 * time.Millisecond

func (l *local) machine() (a account, err error) {
	text, err := fs.ReadFile(l.files, "proc/stat")
	if err != nil {
		return a, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return a, fmt.Errorf("proc/stat begins with %.40q, not with the times of the CPU", line)
	}
	// user nice system idle iowait irq softirq steal; what guests use is in user.
	for i, field := range fields[1:min(len(fields), 9)] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return a, fmt.Errorf("proc/stat: %w", err)
		}
		a.available += time.Duration(n) * tick
		if idle := i == 3 || i == 4; !idle {
			a.used += time.Duration(n) * tick
		}
	}
	return a, nil
}

func (l *local) process() (a account, err error) {
	text, err := fs.ReadFile(l.files, "proc/self/stat")
	if err != nil {
		return a, err
	}
	// The name in brackets may hold anything. utime and stime are the fields 14 and 15.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return a, fmt.Errorf("proc/self/stat has %d fields after the name, not 13 or more", len(fields))
	}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return a, fmt.Errorf("proc/self/stat: %w", err)
		}
		a.used += time.Duration(n) * tick
	}
	a.cpus = float64(l.cpus)
	return a, nil
}
