package rules

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// tuning holds the durations that tests change.
type tuning struct {
	quiet   time.Duration // how long a file must be unchanged
	longest time.Duration // how long to wait for that, and how long a file must be gone
	poll    time.Duration // between reads without an event
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

// maxTries is the number of differing reads in a row after which a file is reported and other files
// no longer wait for it.
const maxTries = 20

var errUnsettled = errors.New("the file keeps changing: write a new one and rename it")

// loadFirst loads everything for the first time.
func (w *fileWatch) loadFirst() error {
	all := w.read()
	// A file that was just written may be incomplete.
	for tries := 0; w.young(all); tries++ {
		if tries == maxTries {
			return fmt.Errorf("%s: %w", w.names(), errUnsettled)
		}
		select {
		case <-w.member.ctx.Done():
			return w.member.ctx.Err()
		case <-time.After(w.tune.quiet):
		}
		again := w.read()
		if slices.EqualFunc(again, all, sight.sameFile) {
			break
		}
		all = again
	}
	if err := w.member.ctx.Err(); err != nil {
		return err
	}
	var first []news
	for _, s := range all {
		first = append(first, w.believe(s))
	}
	return w.member.begin(first...)
}

// young reports whether all files could be read and one was just written.
func (w *fileWatch) young(all []sight) bool {
	return !slices.ContainsFunc(all, func(s sight) bool { return s.err != nil }) &&
		slices.ContainsFunc(all, func(s sight) bool { return time.Since(s.modified) < w.tune.longest })
}

// believe accepts a sight as the content.
func (w *fileWatch) believe(s sight) news {
	n := news{pieceName: s.pieceName, dir: s.dir, left: s.left, taken: s.taken, hash: s.hash, err: s.err}
	if s.data != nil {
		n.parsed, n.places, n.err = parse(s.name, s.data, ParseOptions{})
	}
	delete(w.pending, s.pieceName)
	delete(w.tries, s.pieceName)
	s.data = nil
	if w.seen[s.pieceName] = s; s.left {
		delete(w.seen, s.pieceName)
	}
	return n
}

// run reads the files whenever something happened, and periodically.
func (w *fileWatch) run() {
	ctx := w.member.ctx
	defer w.member.leave()
	defer w.dirs.close()
	soon := newDebounce(w.tune.quiet, w.tune.longest)
	poll := time.NewTimer(w.untilPoll())
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.dirs.events:
			if err != nil {
				_ = survive(func() {
					w.member.loader.log.Warn("penstock: watching rules: change notifications may be lost", "source", w.names(), "error", err)
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
		if again := w.look(); again {
			soon.touch()
		}
		poll.Reset(w.untilPoll())
	}
}

// untilPoll returns the time to wait for events before reading without an event.
func (w *fileWatch) untilPoll() time.Duration {
	if w.dirs.blind == nil {
		w.retry = 0
		return w.tune.poll
	}
	w.retry = min(max(2*w.retry, w.tune.retry), w.tune.retries)
	return w.retry
}

// look reads the files, passes on the new ones once all of them have stopped changing, and reports
// whether to look again after the quiet period. A file that keeps changing for too long is reported
// once, and the others don't wait for it.
func (w *fileWatch) look() (again bool) {
	w.watchDirs()
	var still []sight
	var fresh []news
	wait := false
	for _, s := range w.read() {
		name := s.pieceName
		if s.sameContent(w.seen[name]) {
			w.member.confirm(name, "")
			delete(w.pending, name)
			delete(w.tries, name)
			continue
		}
		quiet := w.tune.quiet
		if s.left { // one way to replace a file removes it first
			quiet = w.tune.longest
		}
		last, met := w.pending[name]
		switch same := met && s.sameFile(last); {
		case same && s.taken.Sub(last.done) >= quiet: // otherwise a poll came in between, or reading took long
			still = append(still, s)
			continue
		case !same:
			s.data = nil
			w.pending[name] = s
			if w.tries[name]++; w.tries[name] == maxTries {
				err := fmt.Errorf("%s: %w", name.name, errUnsettled)
				w.seen[name] = sight{pieceName: name, dir: s.dir, err: err}
				fresh = append(fresh, news{pieceName: name, dir: s.dir, taken: s.taken, err: err})
			}
		}
		again = true
		wait = wait || w.tries[name] < maxTries
	}
	if !wait {
		for _, s := range still {
			fresh = append(fresh, w.believe(s))
		}
	}
	if len(fresh) > 0 {
		_ = w.member.take(fresh...) // which reports the outcome
	}
	return again
}

// watchDirs follows the paths to the directories to watch.
func (w *fileWatch) watchDirs() {
	w.dirs.follow(w.directories)
	m, l := w.member, w.member.loader
	l.mu.Lock()
	was, is := m.polling, w.dirs.blind != nil
	m.polling = is
	l.mu.Unlock()
	_ = survive(func() {
		if is && !was {
			l.log.Warn("penstock: watching rules: no change notifications, polling instead", "source", w.names(), "error", w.dirs.blind)
		} else if was && !is {
			l.log.Info("penstock: watching rules: change notifications work again", "source", w.names())
		}
	})
}

// directories returns the directories that determine which files the paths lead to.
func (w *fileWatch) directories() (all []string) {
	add := func(path string) {
		for _, dir := range lookups(path) {
			if !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	for _, r := range w.roots {
		add(r.file)
		if !r.dir {
			continue
		}
		names, _ := ruleFiles(r.file, trust{all: true}) // the next look reports the error
		for _, name := range append(names, "*") {       // the directory itself decides which new names count
			add(filepath.Join(r.file, name))
		}
	}
	return all
}
