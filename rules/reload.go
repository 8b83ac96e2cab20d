package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// tuning is what tests change.
type tuning struct {
	quiet   time.Duration // how long a file must lie still
	longest time.Duration // how long to wait for that
	poll    time.Duration // between looks that nothing asked for
	retry   time.Duration // the same while polling: the first time, then doubling
	retries time.Duration // up to this
	notify  func() (*notifier, error)
}

var defaultTuning = tuning{
	quiet:   50 * time.Millisecond,
	longest: time.Second,
	poll:    30 * time.Second,
	retry:   100 * time.Millisecond,
	retries: 5 * time.Second,
	notify:  notifyBySystem,
}

// maxTries is how often a file may read differently in a row before that is
// reported.
const maxTries = 20

var errUnsettled = errors.New("the file keeps changing: write a new one and rename it")

// loadFirst loads the file for the first time.
func (w *Watcher) loadFirst(ctx context.Context) error {
	s := w.read()
	// A file that was written just now may be so still.
	for tries := 0; s.err == nil && time.Since(s.modified) < w.tune.longest; tries++ {
		if tries == maxTries {
			return fmt.Errorf("%s: %w", w.path, errUnsettled)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.tune.quiet):
		}
		again := w.read()
		if again.sameFile(s) {
			break
		}
		s = again
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	change, err := w.replace(s)
	if err == nil {
		w.report(s, change, nil)
	}
	return err
}

// run looks at the file whenever something happened, and now and then.
func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	defer w.dirs.close()
	soon := newDebounce(w.tune.quiet, w.tune.longest)
	poll := time.NewTimer(w.untilPoll())
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.dirs.told:
			if err != nil {
				_ = survive(func() {
					w.log.Warn("penstock: watching rule file: changes may go untold", "path", w.path, "error", err)
				})
			}
			soon.touch()
			continue
		case <-soon.fires():
			soon.done()
		case <-poll.C:
		}
		if ctx.Err() != nil {
			return
		}
		if again := w.look(ctx); again {
			soon.touch()
		}
		poll.Reset(w.untilPoll())
	}
}

// untilPoll returns how long to wait for events before looking without.
func (w *Watcher) untilPoll() time.Duration {
	if w.dirs.blind == nil {
		w.retry = 0
		return w.tune.poll
	}
	w.retry = min(max(2*w.retry, w.tune.retry), w.tune.retries)
	return w.retry
}

// look reads the file, reloads it if it is new and lies still, and reports
// whether to look again after the quiet period.
func (w *Watcher) look(ctx context.Context) (again bool) {
	w.watchDirs()
	s := w.read()
	switch {
	case s.sameContent(w.seen):
		w.pending, w.tries = snapshot{}, 0
		return false
	case !s.sameFile(w.pending):
		w.pending = s
		if w.tries++; w.tries == maxTries {
			err := fmt.Errorf("%s: %w", w.path, errUnsettled)
			w.report(snapshot{taken: s.taken, err: err}, Change{}, err)
		}
		return true
	case s.taken.Sub(w.pending.done) < w.tune.quiet: // a poll came in between, or reading took long
		return true
	}
	w.pending, w.tries = snapshot{}, 0
	change, err := Change{}, s.err
	if err == nil { // also content that was applied before: other rules may be in force by now
		change, err = w.replace(s)
	}
	if err != nil && ctx.Err() != nil {
		return false // apply may have failed for that
	}
	w.report(s, change, err)
	return false
}

// replace puts the content of s in force.
func (w *Watcher) replace(s snapshot) (Change, error) {
	parsed, err := ParseWith(w.path, s.data, ParseOptions{})
	if err != nil {
		return Change{}, err
	}
	if err := w.tryApply(parsed.Set); err != nil {
		return Change{}, fmt.Errorf("%s: applying: %w", w.path, err)
	}
	change := Diff(w.good.Set, parsed.Set)
	w.good = parsed
	return change, nil
}

// tryApply is apply, to which a panic is an error like any other: the watcher must
// outlive it, and with it the program.
func (w *Watcher) tryApply(set Set) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.apply(set.Clone()) // what changes next is told by comparing with it
}

// report tells the outcome for s to the status, the log and the hook. The latter two
// may panic, which is told if it can be.
func (w *Watcher) report(s snapshot, change Change, err error) {
	w.seen = s
	w.seen.data = nil
	r := Reload{Time: s.taken, Path: w.path, Hash: s.hash.String(), Change: change, Err: err}
	if err == nil {
		r.Warnings = slices.Clone(w.good.Warnings)
	}
	first := w.status.LastSuccess.IsZero() // nobody else writes there
	w.record(r)
	_ = survive(func() {
		if err != nil {
			w.log.Error("penstock: rule file not loaded, the last good rules stay", "path", r.Path, "error", err)
			return
		}
		about := []any{"path", r.Path, "hash", r.Hash, "rules", w.good.Set.Len(), "change", change.String()}
		if !first && !change.Empty() {
			about = append(about, "what", change.told())
		}
		w.log.Info("penstock: rule file loaded", about...)
		w.good.Warn(w.log)
	})
	if w.hook == nil {
		return
	}
	if p := survive(func() { w.hook(r) }); p != nil {
		_ = survive(func() {
			w.log.Error("penstock: watching rule file: OnReload panicked", "path", w.path, "panic", fmt.Sprint(p))
		})
	}
}

// survive runs f and returns what it panicked with.
func survive(f func()) (reason any) {
	defer func() { reason = recover() }()
	f()
	return nil
}

func (w *Watcher) record(r Reload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.status
	s.OK = r.Err == nil
	if s.OK {
		s.LastSuccess, s.Hash, s.Rules = r.Time, r.Hash, w.good.Set.Len()
		s.Successes++
	} else {
		s.LastFailure, s.LastError = r.Time, r.Err
		s.Failures++
	}
}

// watchDirs follows the path to the directories to watch.
func (w *Watcher) watchDirs() {
	w.dirs.follow(w.file)
	w.mu.Lock()
	was, is := w.status.Polling, w.dirs.blind != nil
	w.status.Polling = is
	w.mu.Unlock()
	_ = survive(func() {
		if is && !was {
			w.log.Warn("penstock: watching rule file: changes can't be told, polling instead", "path", w.path, "error", w.dirs.blind)
		} else if was && !is {
			w.log.Info("penstock: watching rule file: changes are told again", "path", w.path)
		}
	})
}
