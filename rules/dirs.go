package rules

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier reports changes in directories. It is an [fsnotify.Watcher], or a fake in tests.
type notifier struct {
	watches
	events <-chan fsnotify.Event // closed by Close
	errors <-chan error          // closed by Close
}

type watches interface {
	Add(dir string) error
	Remove(dir string) error
	WatchList() []string // without removed directories
	Close() error
}

func notifyBySystem() (*notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &notifier{w, w.Events, w.Errors}, nil
}

// dirs watches the directories that determine which files paths lead to.
type dirs struct {
	events  <-chan error           // receives when something happened; an error if part of it is unknown
	blind   error                  // why changes aren't reported, or nil
	notify  *notifier              // nil if there can be none
	watched map[string]os.FileInfo // the watched file by name
	pump    sync.WaitGroup
}

func openDirs(open func() (*notifier, error)) *dirs {
	d := &dirs{watched: make(map[string]os.FileInfo)}
	if d.notify, d.blind = open(); d.blind != nil {
		d.notify = nil
		return d
	}
	events := make(chan error, 1)
	d.events = events
	d.pump.Go(func() { d.notify.passOn(events) })
	return d
}

// passOn passes on events until the notifier is closed. It never waits for the receiver: a notifier
// that can't deliver its events may hold the lock that watching a directory takes. Events have no
// content, so one pending message is enough.
func (n *notifier) passOn(changes chan<- error) {
	events, errs := n.events, n.errors
	for events != nil || errs != nil {
		var err error
		var open bool
		select {
		case _, open = <-events:
			if !open {
				events = nil
			}
		case err, open = <-errs:
			if !open {
				errs = nil
			}
		}
		if !open {
			continue
		}
		select {
		case changes <- err:
		default:
		}
	}
}

// close stops watching and returns when its goroutine has ended.
func (d *dirs) close() {
	if d.notify != nil {
		_ = d.notify.Close() // nothing can be done about an error
	}
	d.pump.Wait()
}

var errRestless = errors.New("the directories on the way to the file keep changing")

// follow watches the directories that currently matter, and stops watching others.
func (d *dirs) follow(deciding func() []string) {
	if d.notify == nil {
		return
	}
	// Changes between finding a directory and watching it aren't reported, so look again until
	// there is nothing new to watch.
	for range 10 {
		wanted := deciding()
		for dir := range d.watched {
			if !slices.Contains(wanted, dir) {
				d.forget(dir)
			}
		}
		d.blind = nil
		fresh := false
		for _, dir := range wanted {
			fresh = d.watch(dir) || fresh
		}
		if !fresh {
			return
		}
	}
	d.blind = errRestless
}

// watch makes sure that dir is watched and reports whether it wasn't.
func (d *dirs) watch(dir string) (fresh bool) {
	info, err := os.Stat(dir)
	if err == nil {
		// The directory may have been replaced by another one of that name, even one with the same
		// inode number.
		if old, ok := d.watched[dir]; ok && os.SameFile(old, info) && slices.Contains(d.notify.WatchList(), dir) {
			return false
		}
		d.forget(dir)
		err = d.notify.Add(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it vanished just now: look again
		return true
	case err != nil:
		d.blind = err
		return false
	}
	d.watched[dir] = info
	return true
}

func (d *dirs) forget(dir string) {
	delete(d.watched, dir)
	_ = d.notify.Remove(dir) // it may not be watched
}
