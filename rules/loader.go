package rules

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// Loader combines what several sources say into one Set, and puts that in force by one swap. A
// source is a file, a directory of files, or rules that code loads. Each has a name, and its
// place is that in which it was declared. A Guard of package api has a Loader; one by itself is
// for programs that put rules in force in their own way. Make it with [NewLoader]. Its
// methods are safe for concurrent use.
//
// What holds, whatever is loaded at the same time:
//
//   - What is in force combines the last good rules of each source, the last swap of all
//     the sources included. A source that is missing or wrong, or conflicts with the others,
//     keeps what it had, and the others go on.
//   - Rules of a source that could not come into force, because of such a conflict, are tried
//     again whenever another source changes: the mistake may be fixed in either.
//   - A source whose context has ended says nothing more, from that instant on. What it said last
//     stays in force until the next swap, which leaves it out.
//   - What is reported as loaded is in force.
//
// This is why: loads run one after the other, under the lock `loading`, and each looks under it
// whether the context of its source has ended. So code that ends a source and then loads comes
// after it: what the source still finds comes too late. It does not wait until the source has
// noticed its end, since a listener may end the source that tells it. A load works out what each
// source is to say, has the combination applied, and only if that succeeds is anything written
// down; the outcome is told after, outside the lock. So a listener may load, declare sources and
// roll back; only [Loader.Close] waits for it.
type Loader struct {
	apply func(Set) error
	log   *slog.Logger

	loading sync.Mutex // one load at a time
	mu      sync.Mutex // never held while anything of the user's runs

	// These, and what they hold, change under both locks, and are read under either.
	members []*member
	joined  int    // members so far
	set     Set    // in force
	history []kept // the newest is the last
	number  uint64 // of the newest
	over    []Override

	// These are guarded by mu.
	listener  func(Reload)
	inspector func(Parsed)
	laterWins bool
	closed    bool

	running sync.WaitGroup // sources, and who tells listeners of them; none begins once it is closed
}

// NewLoader returns a Loader without sources. apply puts a Set in force, or says why not; it
// gets one at a time, and must not change what is in it. The log gets a line for every outcome
// of a source; nil is [slog.Default].
func NewLoader(apply func(Set) error, log *slog.Logger) *Loader {
	return &Loader{apply: apply, log: log}
}

// SourceError says that a source was not declared because there is already one of its name.
type SourceError struct {
	Source string // its name
}

// Error names the source.
func (e *SourceError) Error() string {
	return fmt.Sprintf("penstock: %q is a source of the rules already; end the context that it was declared with first", e.Source)
}

var errClosed = errors.New("penstock: closed, and watches nothing any more")

// LaterWins declares that from the next load on two sources may have rules with one ID: the rule
// of the later source is in force, in its place, and the other is not. Each such rule is reported
// in [Reload].Overrides, [Status].Overrides and the log. Without it, an ID in two sources is an
// error that names both.
func (l *Loader) LaterWins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.laterWins = true
}

// OnReload has f told of every outcome of the sources that are declared from now on, that of
// their first load included. There is one listener: the latest. nil, the initial value, is none.
// Each source tells one outcome at a time, and several sources may tell theirs at the same time.
func (l *Loader) OnReload(f func(Reload)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = f
}

// OnLoaded has f look at the rules of each source that come into force from now on, before
// listeners are told. nil, the initial value, is nobody. f may be called by several goroutines at
// the same time.
func (l *Loader) OnLoaded(f func(Parsed)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inspector = f
}

// Close ends all sources but code. When it returns, nothing of them runs, and nobody is told
// anything any more; so a listener that calls it waits for itself forever. The rules stay in
// force, and code may load others. Closing twice is fine.
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

// survivingApply is apply, to which a panic is an error like any other: a watch must outlive it,
// and with it the program.
func (l *Loader) survivingApply(set Set) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.apply(set)
}
