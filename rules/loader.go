package rules

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/penstock-go/penstock/internal/safelog"
)

// Loader combines the rules of several sources into one Set, and puts that into force by one swap.
// A source is a file, a directory of files, or rules that code loads. Each has a name, and sources
// are ordered as they were declared. A Guard of package api has a Loader; a Loader by itself is for
// programs that put rules into force in their own way. Create it with [NewLoader]. Its methods are
// safe for concurrent use.
//
// Invariants, regardless of concurrent loads:
//
//   - The rules in force combine the last good rules of each source, up to the last swap of all the
//     sources. A source that is missing or wrong, or conflicts with the others, keeps its previous
//     rules, and the others continue.
//   - Rules of a source that could not come into force because of such a conflict are retried whenever
//     another source changes: the mistake may be fixed in either.
//   - A source changes nothing once its context has ended. Its last rules stay in force until the next
//     swap, which leaves them out.
//   - Rules that are reported as loaded are in force.
//
// The reasoning: loads run one after another, under the lock `loading`, and under it each checks
// whether the context of its source has ended. So if code ends a source and then loads, that load
// comes after the source's: later findings of the source are ignored. Code does not wait until the
// source has noticed its end, since a listener may end the very source that calls it. A load
// computes the contribution of each source, applies the combination, and records anything only if
// that succeeds; the outcome is reported afterwards, outside the lock. So a listener may load, and
// declare sources; only [Loader.Close] waits for it.
type Loader struct {
	apply func(Set) error
	log   *slog.Logger

	loading sync.Mutex // one load at a time
	mu      sync.Mutex // never held while user code runs

	// These fields, and the data they refer to, change under both locks and are read under either.
	members []*member
	joined  int    // members so far
	set     Set    // in force
	history []kept // the newest is the last
	number  uint64 // of the newest
	over    []Override

	// Guarded by mu.
	listener  func(Reload)
	inspector func(Parsed)
	laterWins bool
	writable  map[string]bool // writable files that the log has warned of, or nil if they are not read
	closed    bool

	running sync.WaitGroup // sources, and goroutines that call listeners; none begins once the Loader is closed
}

// NewLoader returns a Loader without sources. apply puts a Set into force or returns an error; it is
// called with one Set at a time, and must not change it. The log gets a line for every outcome of a
// source; nil means [slog.Default].
func NewLoader(apply func(Set) error, log *slog.Logger) *Loader {
	return &Loader{apply: apply, log: safelog.New(log, nil)}
}

// SourceError reports that a source was not declared because there is already one of that name.
type SourceError struct {
	Source string // its name
}

// Error names the source.
func (e *SourceError) Error() string {
	return fmt.Sprintf("penstock: %q is already a source of rules: end the context that it was declared with first", e.Source)
}

var errClosed = errors.New("penstock: closed, no longer watching rules")

// AllowOverrides lets two sources have rules with the same ID, starting with the next load: the rule
// of the later source is in force, in its own position, and the other is not. Each such rule is
// reported in [Reload].Overrides, [Status].Overrides and the log. Without AllowOverrides, an ID in
// two sources is an error that names both.
func (l *Loader) AllowOverrides() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.laterWins = true
}

// OnReload calls f with every outcome of the sources that are declared from now on, including that
// of their first load. There is one listener: the latest. nil, the initial value, means none. Each
// source reports one outcome at a time, but several sources may report theirs at the same time.
func (l *Loader) OnReload(f func(Reload)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = f
}

// OnLoaded calls f with the rules of each source that come into force from now on, before listeners
// are called. nil, the initial value, means none. f may be called by several goroutines at the same
// time.
func (l *Loader) OnLoaded(f func(Parsed)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inspector = f
}

// Close ends all sources but code. When it returns, none of them runs, and listeners are no longer
// called; so a listener that calls it deadlocks. The rules stay in force, and code may load others.
// Closing twice is fine.
func (l *Loader) Close() {
	l.mu.Lock()
	l.closed = true
	for _, m := range l.members {
		if m.watched {
			m.end()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
}

// survivingApply is like apply, but turns a panic into an ordinary error: a watch, and the program,
// must survive it.
func (l *Loader) survivingApply(set Set) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.apply(set)
}
