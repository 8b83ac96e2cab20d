package rules

import (
	"context"
	"errors"
	"fmt"
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
func (w *fileWatch) loadFirst(ctx context.Context) error {
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
	change, err := w.replace(s.data)
	if err == nil {
		w.report(s, change, nil)
	}
	return err
}

// run looks at the file whenever something happened, and now and then.
func (w *fileWatch) run(ctx context.Context) {
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
func (w *fileWatch) untilPoll() time.Duration {
	if w.dirs.blind == nil {
		w.retry = 0
		return w.tune.poll
	}
	w.retry = min(max(2*w.retry, w.tune.retry), w.tune.retries)
	return w.retry
}

// look reads the file, reloads it if it is new and lies still, and reports
// whether to look again after the quiet period.
func (w *fileWatch) look(ctx context.Context) (again bool) {
	w.watchDirs()
	s := w.read()
	switch {
	case s.sameContent(w.seen):
		w.confirm("")
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
		change, err = w.replace(s.data)
	}
	if err != nil && ctx.Err() != nil {
		return false // apply may have failed for that
	}
	w.report(s, change, err)
	return false
}

// report tells the outcome for s.
func (w *fileWatch) report(s snapshot, change Change, err error) {
	w.seen = s
	w.seen.data = nil
	w.Watcher.report(Reload{Time: s.taken, Hash: s.hash.String(), Change: change, Err: err})
}

// watchDirs follows the path to the directories to watch.
func (w *fileWatch) watchDirs() {
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
