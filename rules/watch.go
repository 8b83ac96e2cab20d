package rules

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"
)

// WatchConfig says how to watch a file. The zero value is ready to use.
type WatchConfig struct {
	// OnReload is told of every outcome, the first one before Watch returns.
	// It is called by one goroutine at a time, as apply is, and neither may
	// call Close, which waits for them; cancelling the context is fine. A panic of
	// apply refuses the rules; one of OnReload is logged.
	OnReload func(Reload)
	// Logger gets a line for every outcome, which tells what a reload has changed, rule by
	// rule and field by field, of up to ten rules. nil is [slog.Default].
	Logger *slog.Logger
}

// Reload is one outcome of watching: new rules are in force, or Err says why
// the last good ones stay, if there are any.
type Reload struct {
	Time     time.Time
	Path     string    // of the file, or the name of the source
	Hash     string    // the first 12 hex digits of the content's SHA-256; "" if it couldn't be read
	Revision string    // what the source calls the content; "" of a file, or if it couldn't be read
	Cached   time.Time // when the rules were written to the cache that they are from; else zero
	Change   Change    // from what was applied before; none on error
	// Warnings are about rules of Sentinel's, see [ParseWith]. They are logged, too.
	Warnings []Warning
	Err      error // of reading, of parsing, or of apply
}

// Status is how watching a file or a source stands.
type Status struct {
	Path        string    // of the file, or the name of the source
	Watching    bool      // it has not ended
	OK          bool      // the last reload succeeded
	Polling     bool      // of a file: the system doesn't tell of changes; the file is read every few seconds
	Hash        string    // of the content in force
	Revision    string    // what the source calls that; "" of a file
	Cached      time.Time // when that was written to the cache that it is from; zero if it is not
	Confirmed   time.Time // when file or source was last seen to hold that
	Rules       int       // in force
	LastSuccess time.Time // never zero
	LastFailure time.Time // zero if there was none
	LastError   error     // of LastFailure; stays after a later success
	Successes   uint64    // reloads, the first load included
	Failures    uint64
}

// Watcher keeps applying rules as they change. Make one with [Watch] or [WatchSource]. Its
// methods are safe for concurrent use.
type Watcher struct {
	path  string // of the file, as given, or the name of the source
	what  string // it is that is watched, for the log
	key   string // of path in the log
	apply func(Set) error
	hook  func(Reload)
	log   *slog.Logger

	cancel context.CancelFunc
	done   chan struct{} // closed when whatever watches has ended

	good Parsed // in force; used by who watches

	mu     sync.Mutex
	status Status
}

// fileWatch is a file that a Watcher watches. It is used by [Watch], then by the goroutine
// that starts.
type fileWatch struct {
	*Watcher
	file string // absolute: the working directory may change
	tune tuning

	dirs    *dirs
	retry   time.Duration // until the next look, while polling
	seen    snapshot      // what was reported last
	pending snapshot      // read once, to be read again before it is believed
	tries   int           // pending in a row
}

// Watch loads the rule file at path (see [Load]), hands it to apply, and does
// so again whenever the content changes, until ctx ends or the Watcher is
// closed. If the first load or its apply fails, Watch returns the error and
// leaves nothing running.
//
// The directory is watched, not the file, and so is every directory in which
// a symbolic link on the way to the file stands. So all of these are seen:
// writing in place, renaming a new file over the old one, deleting and
// re-creating it or its directory, and the swapped links of a Kubernetes
// volume. After a change the file must lie still for 50 ms (or a second must
// have passed) and read the same twice before it is believed: what is caught
// half-written is read again. Still, whoever writes should write a new file
// and rename it, for nothing tells half a file that stays so from a whole one.
// In case no change is told, the file is read every 30 s; where changes can't
// be told at all, every 5 s.
//
// In a bubble of testing/synctest on Linux it doesn't return, since the time there stands still
// as long as anything waits for the system: take [Load] in such tests.
//
// While the file is missing, empty, wrong or refused by apply, the last good
// rules stay. Each outcome is told once: content that failed isn't tried again
// until it changes. The Set that apply gets is its own.
func Watch(ctx context.Context, path string, apply func(Set) error, cfg WatchConfig) (*Watcher, error) {
	w, err := watch(ctx, path, apply, cfg, defaultTuning)
	if err != nil {
		return nil, err
	}
	return w.Watcher, nil
}

func watch(ctx context.Context, path string, apply func(Set) error, cfg WatchConfig, tune tuning) (*fileWatch, error) {
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	w := &fileWatch{Watcher: newWatcher(path, apply, cfg), file: file, tune: tune, dirs: openDirs(tune.notify)}
	w.watchDirs() // before reading, lest a change falls between
	if err := w.loadFirst(ctx); err != nil {
		w.dirs.close()
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

func newWatcher(path string, apply func(Set) error, cfg WatchConfig) *Watcher {
	w := &Watcher{
		path:   path,
		what:   "rule file",
		key:    "path",
		apply:  apply,
		hook:   cfg.OnReload,
		log:    cfg.Logger,
		done:   make(chan struct{}),
		status: Status{Path: path},
	}
	if w.log == nil {
		w.log = slog.Default()
	}
	return w
}

// Close stops watching. When it returns, apply and OnReload aren't running and
// won't be called again, and nothing is left. The rules stay in force. Closing
// twice is fine.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

// Status returns how watching stands now.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	select {
	case <-w.done:
	default:
		s.Watching = true
	}
	return s
}
