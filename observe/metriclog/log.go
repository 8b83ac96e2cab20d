package metriclog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
)

// Config sets the location and the size of the logs. The zero value has Sentinel's defaults:
// ~/logs/csp, and 8 files of 50 MiB.
type Config struct {
	Dir      string // created if missing; "" means logs/csp in the user's home
	App      string // first part of the file names; "" means the program's name
	PID      bool   // add the process ID to file names, for several processes in one directory
	MaxBytes int64  // of one file of the metric log; 0 means 50 MiB, the minimum 1 KiB
	MaxFiles int    // of the metric log, without the indexes; 0 means 8

	BlockBytes int64 // of one file of the block log; 0 means 300 MiB, the minimum 1 KiB
	BlockFiles int   // of the block log; 0 means 3

	// Location is the time zone of dates and days; nil means time.Local.
	Location *time.Location
}

const leastBytes = 1 << 10

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return c, fmt.Errorf("metriclog: Config.Dir is empty and the home directory is unknown: %w", err)
		}
		c.Dir = filepath.Join(home, "logs", "csp")
	}
	if c.App == "" {
		c.App = filepath.Base(os.Args[0])
	}
	if c.Location == nil {
		c.Location = time.Local
	}
	for _, size := range []struct {
		name         string
		n            *int64
		usual, least int64
	}{
		{"MaxBytes", &c.MaxBytes, 50 << 20, leastBytes},
		{"BlockBytes", &c.BlockBytes, 300 << 20, leastBytes},
	} {
		if *size.n == 0 {
			*size.n = size.usual
		}
		if *size.n < size.least {
			return c, fmt.Errorf("metriclog: Config.%s is %d: use %d or more, or 0 for %d", size.name, *size.n, size.least, size.usual)
		}
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = 8
	}
	if c.BlockFiles == 0 {
		c.BlockFiles = 3
	}
	if c.MaxFiles < 1 || c.BlockFiles < 1 {
		return c, fmt.Errorf("metriclog: Config.MaxFiles is %d and BlockFiles %d: use 1 or more, or 0 for 8 and 3", c.MaxFiles, c.BlockFiles)
	}
	return c, nil
}

// Log writes the metric log and the block log of a Guard. It is safe for concurrent use. It owns a
// timer, which reads the Guard's counts at the end of each second of its clock, and never delays a
// call. If the disk is slow and the log falls behind, it catches up on the last minute.
type Log struct {
	guard  *api.Guard
	config Config
	base   string
	blocks *blockFile // nil without a block log

	mu     sync.Mutex
	next   time.Time // the first second not written yet
	output output
	ended  bool
	failed time.Time // when a failure was last logged
	stop   func()    // stops the timer
}

// Start begins writing the logs of a Guard, from the current second: the metric log, and the block
// log if its chain has a [Blocks] slot, as [Chain] does. It returns an error if the configuration
// is invalid or the directory can't be created. Files are created when there is something to write.
func Start(g *api.Guard, config Config) (*Log, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	pid := 0
	if config.PID {
		pid = os.Getpid()
	}
	l := &Log{guard: g, config: config, base: BaseName(config.App, pid), next: second(g.Now())}
	l.output = output{dir: config.Dir, base: l.base, maxBytes: config.MaxBytes, maxFiles: config.MaxFiles, touched: l.touched}
	if blocks := blocksOf(g); blocks != nil {
		l.blocks = &blockFile{
			path: filepath.Join(config.Dir, "sentinel-block.log"+pidSuffix(pid)), from: blocks,
			maxBytes: config.BlockBytes, maxFiles: config.BlockFiles, location: config.Location, touched: l.touched,
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armLocked()
	return l, nil
}

// second returns the beginning of the second that contains a Guard's time.
func second(now int64) time.Time { return time.Unix(0, now).Truncate(time.Second) }

// armLocked sets the timer for the end of the current second.
func (l *Log) armLocked() {
	now := time.Unix(0, l.guard.Now())
	l.stop = clocks.Alarm(l.guard.Config().Clock, second(now.UnixNano()).Add(time.Second).Sub(now), l.ring)
}

func (l *Log) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	defer func() { // a panic in the user's clock must end neither the process nor the log
		if reason := recover(); reason != nil {
			l.warnLocked(fmt.Errorf("recovered from a panic: %v", reason))
			l.stop = clocks.Alarm(l.guard.Config().Clock, time.Second, l.ring)
		}
	}()
	l.flushLocked(second(l.guard.Now()))
	l.armLocked()
}

// flushLocked writes the seconds before until.
func (l *Log) flushLocked(until time.Time) {
	var err error
	rows := rowsUntil(l.guard, l.guard.Now(), l.next, until)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].At.Equal(rows[0].At) {
			n++
		}
		err = errors.Join(err, l.output.write(rows[0].At.In(l.config.Location), rows[:n]))
		rows = rows[n:]
	}
	l.next = until
	if l.blocks != nil {
		err = errors.Join(err, l.blocks.flush(until.Unix()))
	}
	if err != nil {
		l.warnLocked(err)
	}
}

// touched logs that a new file is started because another process has touched the old one.
func (l *Log) touched(what, path string) {
	l.guard.Logger().Warn("penstock: metric log: file was "+what+" by another process, starting a new one", "file", path)
}

// warnLocked logs that a second was not written, at most once a minute.
func (l *Log) warnLocked(err error) {
	if now := time.Now(); now.Sub(l.failed) >= time.Minute {
		l.failed = now
		l.guard.Logger().Error("penstock: metric log: counts of a second could not be written", "error", err)
	}
}

// Find searches the files of the log, like the function [Find].
func (l *Log) Find(q Query) ([]Row, error) { return Find(l.config.Dir, l.base, q) }

// Close writes all counts, including the current second's, stops the timer and closes the files.
// Closing twice is safe.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	l.stop()
	l.flushLocked(second(l.guard.Now()).Add(time.Second))
	err := l.output.close()
	if l.blocks != nil {
		err = errors.Join(err, l.blocks.close())
	}
	return err
}

// output is the current file of the metric log, and its index.
type output struct {
	dir, base string
	maxBytes  int64
	maxFiles  int

	touched func(what, path string) // reports that another process has touched a file

	day     string // of the file, "" without one
	data    *os.File
	index   *os.File
	size    int64 // of data
	entries int64 // of index
	buffer  []byte
}

// write writes the rows of a second. If that fails, it removes the part written, so that the next
// rows start on a new line.
func (o *output) write(at time.Time, rows []Row) error {
	o.buffer = o.buffer[:0]
	for _, row := range rows {
		row.At = at
		o.buffer = append(row.Append(o.buffer), '\n')
	}
	day := at.Format(time.DateOnly)
	o.look()
	if o.day != day || o.size > 0 && o.size+int64(len(o.buffer)) > o.maxBytes {
		if err := o.roll(day); err != nil {
			return err
		}
	}
	var entry [entrySize]byte
	binary.BigEndian.PutUint64(entry[:], uint64(at.Unix()))
	binary.BigEndian.PutUint64(entry[8:], uint64(o.size))
	// The entry comes first: a reader that finds it without its lines sees the end of the file,
	// while lines without an entry would be missed.
	_, err := o.index.Write(entry[:])
	if err == nil {
		_, err = o.data.Write(o.buffer)
	}
	if err != nil {
		if err := errors.Join(o.data.Truncate(o.size), o.index.Truncate(o.entries*entrySize)); err != nil {
			o.day = "" // start a new file
		}
		return err
	}
	o.size += int64(len(o.buffer))
	o.entries++
	return nil
}

// look makes write start a new file if the current one, or its index, was removed, moved or truncated:
// otherwise further rows would be lost or not found.
func (o *output) look() {
	if o.day == "" {
		return
	}
	for _, f := range []struct {
		file *os.File
		size int64
	}{{o.data, o.size}, {o.index, o.entries * entrySize}} {
		switch size, there := sizeOf(f.file); {
		case !there:
			o.day = ""
			o.touched("removed or renamed", f.file.Name())
			return
		case size < f.size:
			o.day = ""
			o.touched("cut", f.file.Name())
			return
		}
	}
}

// sizeOf returns the size of an open file, and whether its path still leads to it.
func sizeOf(f *os.File) (size int64, there bool) {
	opened, err := f.Stat()
	if err != nil {
		return 0, false
	}
	named, err := os.Lstat(f.Name())
	return opened.Size(), err == nil && os.SameFile(opened, named)
}

// roll starts a new file, removes the oldest, and updates the link.
func (o *output) roll(day string) error {
	_ = o.close() // each second was written or reported as lost when it ended
	for {
		files, err := list(o.dir, o.base)
		if err != nil {
			return err
		}
		f := next(files, o.dir, o.base, day)
		o.data, err = os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		_ = os.Remove(f.path + indexSuffix) // left by a removed file, or a link to somewhere else
		if o.index, err = os.OpenFile(f.path+indexSuffix, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return errors.Join(err, o.close())
		}
		o.day, o.size, o.entries = day, 0, 0
		for len(files) >= o.maxFiles {
			_, _ = os.Remove(files[0].path), os.Remove(files[0].path+indexSuffix) // or another process has
			files = files[1:]
		}
		o.link(f.path)
		return nil
	}
}

// link makes the base name point to the file. It does nothing on a system without links.
func (o *output) link(path string) {
	name := filepath.Join(o.dir, o.base)
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return // another owner's
	}
	temp := fmt.Sprintf("%s.%d.link", name, os.Getpid())
	_ = os.Remove(temp) // left by a crash
	if os.Symlink(filepath.Base(path), temp) == nil && os.Rename(temp, name) != nil {
		_ = os.Remove(temp)
	}
}

func (o *output) close() (err error) {
	o.day = ""
	for _, f := range []**os.File{&o.data, &o.index} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
			*f = nil
		}
	}
	return err
}
