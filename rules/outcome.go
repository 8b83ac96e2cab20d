package rules

import (
	"fmt"
	"slices"
	"time"
)

// replace parses data and puts it in force.
func (w *Watcher) replace(data []byte) (Change, error) {
	parsed, err := ParseWith(w.path, data, ParseOptions{})
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

// report tells an outcome to the status, the log and the hook. The latter two may panic,
// which is told if it can be.
func (w *Watcher) report(r Reload) {
	r.Path = w.path
	if r.Err == nil {
		r.Warnings = slices.Clone(w.good.Warnings)
	}
	first := w.status.LastSuccess.IsZero() // nobody else writes there
	w.record(r)
	_ = survive(func() {
		if r.Err != nil {
			w.log.Error("penstock: "+w.what+" not loaded, the last good rules stay", w.key, r.Path, "error", r.Err)
			return
		}
		about := []any{w.key, r.Path, "hash", r.Hash, "rules", w.good.Set.Len(), "change", r.Change.String()}
		if !first && !r.Change.Empty() {
			about = append(about, "what", r.Change.told())
		}
		if r.Cached.IsZero() {
			w.log.Info("penstock: "+w.what+" loaded", about...)
		} else {
			about = append(about, "age", r.Time.Sub(r.Cached).Round(time.Second))
			w.log.Warn("penstock: "+w.what+" not reached, the rules are from its cache", about...)
		}
		w.good.Warn(w.log)
	})
	if w.hook == nil {
		return
	}
	if p := survive(func() { w.hook(r) }); p != nil {
		_ = survive(func() {
			w.log.Error("penstock: watching "+w.what+": OnReload panicked", w.key, w.path, "panic", fmt.Sprint(p))
		})
	}
}

// survive runs f and returns what it panicked with.
func survive(f func()) (reason any) {
	defer func() { reason = recover() }()
	f()
	return nil
}

// confirm notes that the content which was tried last is still there, as this revision.
func (w *Watcher) confirm(revision string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := &w.status; s.OK { // it is in force
		s.Revision, s.Confirmed = revision, time.Now()
	}
}

func (w *Watcher) record(r Reload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.status
	s.OK = r.Err == nil
	if s.OK {
		s.LastSuccess, s.Hash, s.Rules = r.Time, r.Hash, w.good.Set.Len()
		s.Revision, s.Cached, s.Confirmed = r.Revision, r.Cached, r.Time
		if !r.Cached.IsZero() {
			s.Confirmed = r.Cached
		}
		s.Successes++
	} else {
		s.LastFailure, s.LastError = r.Time, r.Err
		s.Failures++
	}
}
