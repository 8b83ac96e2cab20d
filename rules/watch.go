package rules

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
)

// WatchConfig configures the watching of a file. The zero value is ready to use.
type WatchConfig struct {
	// OnReload is called with every outcome, the first one before Watch returns. It is called by
	// one goroutine at a time, as is apply. Neither may call Close, which waits for them;
	// cancelling the context is fine. If apply panics, the rules are refused; a panic of OnReload
	// is logged.
	OnReload func(Reload)
	// Logger gets a line for every outcome, with the changes of a reload, rule by rule and field by
	// field, for up to ten rules. nil means [slog.Default].
	Logger *slog.Logger
}

// Watcher keeps applying rules as they change. Create one with [Watch]. Its methods are safe for
// concurrent use.
type Watcher struct {
	loader *Loader
	files  *fileWatch
}

// Watch loads the rule file at path (see [Load]), passes it to apply, and does so again whenever
// the content changes, until ctx ends or the Watcher is closed. If the first load or its apply
// fails, Watch returns the error and leaves nothing running.
//
// The directory is watched, not the file, and so is every directory that holds a symbolic link on
// the way to the file. So all of these are seen: writing in place, renaming a new file over the old
// one, deleting and re-creating it or its directory, and the swapped links of a Kubernetes volume.
// After a change the file must not change for 50 ms (or a second must have passed) and must read
// the same twice before it is accepted: a file that is half written is read again. Still, write a
// new file and rename it: a file that is left half written can't be distinguished from a complete
// one. In case a notification is lost, the file is read every 30 s as well; if the system sends
// no notifications at all, every 5 s.
//
// In a testing/synctest bubble on Linux, Watch doesn't return, since time there stands still while
// anything waits for the system: use [Load] in such tests.
//
// While the file is missing, empty, wrong or refused by apply, the last good rules stay. Each
// outcome is reported once: content that failed isn't tried again until it changes. apply gets a
// copy of the Set.
//
// To watch several files, or directories, use a [Loader].
func Watch(ctx context.Context, path string, apply func(Set) error, cfg WatchConfig) (*Watcher, error) {
	return watch(ctx, path, apply, cfg, defaultTuning)
}

func watch(ctx context.Context, path string, apply func(Set) error, cfg WatchConfig, tune tuning) (*Watcher, error) {
	l := NewLoader(func(set Set) error { return apply(set.Clone()) }, cfg.Logger)
	l.OnReload(cfg.OnReload)
	w, err := l.watch(ctx, []string{path}, false, tune)
	if err != nil {
		return nil, err
	}
	return &Watcher{l, w}, nil
}

// Close stops watching. When it returns, apply and OnReload aren't running and won't be called
// again, and no goroutine is left. The rules stay in force. Closing twice is fine.
func (w *Watcher) Close() { w.loader.Close() }

// Status returns the current state of the watch.
func (w *Watcher) Status() Status { return w.loader.Status().Sources[0] }

// Watch declares files, and directories of files, as sources of the rules. It loads all of them
// now, and again whenever one changes, until ctx ends or the Loader is closed. If the first load
// fails, Watch returns the error and leaves nothing in force or running.
//
// In a directory, each file whose name ends in .yaml, .yml or .json is a source, named by its path,
// in the order of the names. Hidden files, names that begin with # or ~, and subdirectories are
// ignored. Files may be added and removed: a file's rules are removed when it has been missing for a
// second. A directory that can't be read, that every user can write (see [Loader.AllowWritable]), or
// that has no rule file is an error like any other: the last good rules of its files stay.
//
// Files are watched as in [Watch]. Changes made at the same time are put into force by the same
// swap, as when a rule moves from one file to another, unless a file keeps changing.
func (l *Loader) Watch(ctx context.Context, paths ...string) error {
	_, err := l.watch(ctx, paths, true, defaultTuning)
	return err
}

// watch is like Watch, but can refuse directories.
func (l *Loader) watch(ctx context.Context, paths []string, directories bool, tune tuning) (*fileWatch, error) {
	w, err := l.declare(ctx, paths, directories, tune)
	if err == nil {
		go w.run()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	return w, err
}

// declare is the part of watch up to the first load.
func (l *Loader) declare(ctx context.Context, paths []string, directories bool, tune tuning) (*fileWatch, error) {
	if len(paths) == 0 {
		return nil, errors.New(`penstock: nothing to watch: give the path of a rule file or of a directory, as in WatchRules(ctx, "rules.yaml")`)
	}
	w := &fileWatch{tune: tune, seen: make(map[pieceName]sight), pending: make(map[pieceName]sight), tries: make(map[pieceName]int)}
	for _, path := range paths {
		file, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		w.roots = append(w.roots, root{path, file, directories && isDirectory(file)})
	}
	m, err := l.join(ctx, paths)
	if err != nil {
		return nil, err
	}
	w.member = m
	w.dirs = openDirs(tune.notify)
	w.watchDirs() // before reading, so that no change in between is missed
	if err := w.loadFirst(); err != nil {
		w.dirs.close()
		m.leave()
		return nil, err
	}
	return w, nil
}

// fileWatch watches files and directories. It is used by the goroutine that declares them, then by
// the goroutine that starts.
type fileWatch struct {
	member *member
	roots  []root
	tune   tuning

	dirs    *dirs
	retry   time.Duration       // until the next read, while polling
	seen    map[pieceName]sight // reported last
	pending map[pieceName]sight // read once, to be read again before they are accepted
	tries   map[pieceName]int   // times pending in a row
}

// root is a watched path.
type root struct {
	name string // the path as given
	file string // absolute: the working directory may change
	dir  bool   // it was a directory when it was declared
}

// names returns the paths in the form used in logs.
func (w *fileWatch) names() string { return strings.Join(w.member.names, ", ") }
