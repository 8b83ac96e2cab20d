package rules

import (
	"fmt"
	"slices"
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
			w.log.Error("penstock: rule file not loaded, the last good rules stay", "path", r.Path, "error", r.Err)
			return
		}
		about := []any{"path", r.Path, "hash", r.Hash, "rules", w.good.Set.Len(), "change", r.Change.String()}
		if !first && !r.Change.Empty() {
			about = append(about, "what", r.Change.told())
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
