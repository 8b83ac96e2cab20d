package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/rules"
)

// SourceError says that rules were not loaded, or a file is not watched, because a file is
// watched already: two sources would overwrite each other, and whichever changed last
// would hold.
type SourceError struct {
	Source string // the file that is watched, as it was given
}

// Error names the file.
func (e *SourceError) Error() string {
	return fmt.Sprintf("penstock: rules were not loaded: this Guard takes its rules from the file %q, which WatchRules watches; change the file, or end the context given to WatchRules first", e.Source)
}

// watch is a file that is watched. From when it begins until its context ends it is the
// source of the rules, and nobody else loads any.
//
// Whoever replaces rules holds the Guard's lock while it does, and has seen under it that
// nobody else is the source, or that it is and its context has not ended. So as soon as
// the context has ended others may load, and what the watch still finds in its file is
// refused: the order of the loads is that of the sources. That the watch has noticed its
// end is not waited for, since a listener may end the watch that tells it and load.
type watch struct {
	guard    *Guard
	path     string
	listener func(Reload)
	number   int64 // of the watch, in the order in which those of the Guard began
	ctx      context.Context
	end      context.CancelFunc
	watcher  *rules.Watcher // nil until the first load succeeded; the Guard's lock guards it
}

// WatchRules loads the rules of a file now, and again whenever it changes, until
// ctx ends or the Guard is closed. The first load must succeed; later, a file that
// is missing, empty or wrong leaves the last good rules in force, and is logged.
// They stay in force after the watch.
//
// In a bubble of testing/synctest on Linux WatchRules doesn't return: its goroutine that waits
// for the system's notice of a change is never durably blocked, so the bubble's clock stands
// still, and the time never passes for which a file must be unchanged before it is read. Use
// [Guard.LoadRulesFile] there, which starts no goroutine.
//
// A Guard has one source of rules: while it watches a file, to watch another or to
// load rules is a [*SourceError]. There has to be one path: more are for later, when
// sources can be combined, and an error now.
func (g *Guard) WatchRules(ctx context.Context, paths ...string) error {
	switch len(paths) {
	case 0:
		return errors.New("penstock: WatchRules needs the path of a rule file, as in WatchRules(ctx, \"rules.yaml\")")
	case 1:
	default:
		return fmt.Errorf("penstock: WatchRules got %d rule files (%q), and a Guard watches one: put all rules into it", len(paths), paths)
	}
	path := paths[0]
	w, err := g.newWatch(ctx, path)
	if err != nil {
		return err
	}
	watcher, err := rules.Watch(w.ctx, path, w.load, rules.WatchConfig{OnReload: w.listener, Logger: g.logger})
	if err != nil {
		w.leave()
	} else {
		g.loading.Lock()
		w.watcher = watcher
		if g.source != w { // its listener has ended it in its first report, and begun another
			g.keepStatus(w)
		}
		g.loading.Unlock()
		context.AfterFunc(w.ctx, func() {
			watcher.Close()
			w.leave()
		})
	}
	g.loading.Lock()
	defer g.loading.Unlock()
	if g.closed {
		return errClosed
	}
	return err
}

// OnReload has f told of every outcome of the watches that begin from now on, that of
// their first load included; see [rules.WatchConfig]. There is one listener: the latest.
// nil, as in the beginning, is none.
func (g *Guard) OnReload(f func(Reload)) {
	g.loading.Lock()
	defer g.loading.Unlock()
	g.listener = f
}

// newWatch makes a watch the source of the rules, if there is none.
func (g *Guard) newWatch(ctx context.Context, path string) (*watch, error) {
	g.loading.Lock()
	defer g.loading.Unlock()
	if g.closed {
		return nil, errClosed
	}
	if err := g.taken(); err != nil {
		return nil, err
	}
	if g.source != nil { // it has ended and not left yet
		g.keepStatus(g.source)
	}
	g.watches++
	w := &watch{guard: g, path: path, listener: g.listener, number: g.watches}
	w.ctx, w.end = context.WithCancel(ctx)
	g.source = w
	g.watching.Add(1)
	return w, nil
}

// taken is an error if there is a source of the rules. The caller holds the lock.
func (g *Guard) taken() error {
	if w := g.source; w != nil && w.ctx.Err() == nil {
		return &SourceError{w.path}
	}
	return nil
}

// load is what the watch does with the rules of its file.
func (w *watch) load(set RuleSet) error {
	w.guard.loading.Lock()
	defer w.guard.loading.Unlock()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.guard.load(set)
}

// leave ends the watch; nothing of it runs any more.
func (w *watch) leave() {
	w.end()
	g := w.guard
	g.loading.Lock()
	if g.source == w {
		g.keepStatus(w)
		g.source = nil
	}
	g.loading.Unlock()
	g.watching.Done()
}

// Status is how watching stands: that of the watch which is going on, or else of the last
// one whose first load succeeded. It is zero if there was none.
func (g *Guard) Status() Status {
	g.loading.Lock()
	defer g.loading.Unlock()
	if w := g.source; w != nil && w.watcher != nil {
		return w.status()
	}
	return g.watched
}

// keepStatus keeps how a watch stood that is over. The caller holds the lock.
func (g *Guard) keepStatus(w *watch) {
	if w.watcher != nil && w.number >= g.last {
		g.watched, g.last = w.status(), w.number
		g.watched.Watching = false
	}
}

// status is how the watch stands. It has a watcher.
func (w *watch) status() Status {
	s := w.watcher.Status()
	s.Watching = s.Watching && w.ctx.Err() == nil
	return s
}
