package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// planLocked returns the contribution of each piece now, in the order of the sources. It leaves out
// the pieces of sources that have ended, and code that a live source of the same name replaces.
func (l *Loader) planLocked() []contribution {
	live := l.liveLocked()
	var all []contribution
	for _, m := range l.members {
		for _, p := range m.pieces {
			if !m.gone() && !(p.yields && live[p.name]) {
				all = append(all, contribution{p, p.wanted})
			}
		}
	}
	inOrder(all)
	return all
}

// liveLocked returns the names of the watched pieces.
func (l *Loader) liveLocked() map[string]bool {
	live := make(map[string]bool)
	for _, m := range l.members {
		for _, p := range m.pieces {
			live[p.name] = live[p.name] || m.names != nil && !m.gone() && !p.left
		}
	}
	return live
}

func inOrder(all []contribution) {
	slices.SortStableFunc(all, func(a, b contribution) int {
		return cmp.Or(cmp.Compare(a.piece.member.number, b.piece.member.number), a.piece.compare(b.piece.pieceName))
	})
}

// attempt is a load in progress: fresh holds the changed pieces, and refused the pieces that keep
// their rules in force, with the reasons.
type attempt struct {
	plan    []contribution
	fresh   []*piece
	refused map[*piece]error
}

// loadLocked puts the wanted contents of the pieces into force. fresh are the changed pieces. It also
// retries contents of other pieces that were refused before. On a conflict it leaves out the retried
// pieces first, then the fresh ones. A piece that is left out keeps its rules in force, and the
// others proceed; but if whole is set, applying only some of the fresh pieces is an error.
//
// It returns the reports to send, and the errors of the fresh pieces. The caller holds loading.
func (l *Loader) loadLocked(fresh []*piece, whole bool, apply func(Set) error) ([]report, error) {
	l.mu.Lock()
	laterWins := l.laterWins
	l.mu.Unlock()
	a := &attempt{l.planLocked(), fresh, make(map[*piece]error)}
	for {
		c := combine(a.plan, laterWins)
		var errs map[*piece]error
		var err error
		if len(c.conflicts) > 0 {
			errs = c.errorsFor(a.givingWay(c.concerned()))
		} else if err = apply(c.set); err != nil {
			errs = make(map[*piece]error)
			for p := range a.givingWay(nil) {
				errs[p] = p.whyNot(err)
			}
		} else {
			return append(l.refuseAll(a), l.commit(c, a)...), a.errors()
		}
		if len(errs) == 0 { // only pieces that a watch has replaced are fresh, and they are not in the plan
			if err == nil {
				err = errClash
			}
			for _, p := range a.unplanned() {
				a.refused[p] = p.whyNot(err)
			}
		}
		for i, s := range a.plan { // leaves out at least one each time, so this terminates
			if err := errs[s.piece]; err != nil {
				a.refused[s.piece] = err
				a.plan[i].content = s.piece.good
			}
		}
		if whole && a.errors() != nil {
			return nil, a.errors()
		}
		if !a.hasNews() {
			return l.refuseAll(a), a.errors()
		}
	}
}

// givingWay returns the pieces to leave out, among the concerned ones (nil means all): pieces that
// were already refused or, if there are none, the fresh ones.
func (a *attempt) givingWay(concerned map[*piece]bool) map[*piece]bool {
	stale, fresh := make(map[*piece]bool), make(map[*piece]bool)
	for _, s := range a.plan {
		p := s.piece
		switch {
		case a.refused[p] != nil || concerned != nil && !concerned[p]:
		case slices.Contains(a.fresh, p):
			fresh[p] = true
		case s.content != p.good:
			stale[p] = true
		}
	}
	if len(stale) > 0 {
		return stale
	}
	return fresh
}

// hasNews reports whether any change is left to be put into force.
func (a *attempt) hasNews() bool {
	return len(a.unplanned()) > 0 || slices.ContainsFunc(a.plan, func(s contribution) bool {
		return a.refused[s.piece] == nil && (s.content != s.piece.good || slices.Contains(a.fresh, s.piece))
	})
}

// unplanned returns the fresh pieces that are neither in the plan nor refused: leaving them out is a
// change.
func (a *attempt) unplanned() []*piece {
	return slices.DeleteFunc(slices.Clone(a.fresh), func(p *piece) bool {
		return a.refused[p] != nil || slices.ContainsFunc(a.plan, func(s contribution) bool { return s.piece == p })
	})
}

var errClash = errors.New("the other sources have rules with the same ID")

// errors returns the errors of the fresh pieces.
func (a *attempt) errors() error {
	var errs []error
	for _, p := range a.fresh {
		if err := a.refused[p]; err != nil {
			errs = append(errs, err)
		}
	}
	return joined(errs)
}

func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// whyNot returns the error of applying as reported for the piece.
func (p *piece) whyNot(err error) error {
	if p.wanted != nil && p.wanted.invalid != nil {
		err = p.wanted.invalid // the error of applying has indexes among all rules
	}
	if p.member.names == nil {
		return err
	}
	return fmt.Errorf("%s: applying: %w", p.name, err)
}

// refuseAll records the errors of the fresh pieces. Refusals of others were already reported.
func (l *Loader) refuseAll(a *attempt) (reports []report) {
	for _, p := range a.fresh {
		if err := a.refused[p]; err != nil {
			reports = append(reports, l.refuse(p, err))
		}
	}
	return reports
}

// refuse records that the rules of the piece in force stay.
func (l *Loader) refuse(p *piece, err error) report {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &p.status
	s.OK, s.LastFailure, s.LastError = false, p.taken, err
	s.Failures++
	return report{member: p.member, Reload: Reload{Time: p.taken, Source: p.name, Hash: p.heard.hash.String(), Revision: p.heard.revision,
		Number: l.number, Err: err}}
}

// commit records that the combination of an attempt is in force.
func (l *Loader) commit(c combination, a *attempt) (reports []report) {
	next := kept{Revision: Revision{Rules: c.set.Len(), Overrides: c.overrides}}
	planned := make(map[*piece]bool, len(c.pieces))
	changes := make(map[*piece]Change)
	for _, s := range c.pieces {
		p := s.piece
		planned[p] = true
		if s.content != nil {
			next.pieces = append(next.pieces, keptPiece{p.pieceName, s.content})
		}
		if a.refused[p] == nil && (s.content != p.good || slices.Contains(a.fresh, p)) {
			changes[p] = Diff(setOf(p.good), setOf(s.content))
		}
	}
	changed := l.compare(&next, c.set)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.set, l.over = c.set, c.overrides
	if changed {
		l.number++
		next.Number = l.number
		l.history = append(l.history[max(0, len(l.history)-MaxRevisions+1):len(l.history):len(l.history)], next)
	}
	for _, s := range c.pieces {
		p := s.piece
		p.good = s.content
		is := &p.status
		is.Hash, is.Rules = hashIn(p.good), setOf(p.good).Len()
		is.Overrides = overridesOf(p.name, c.overrides)
		change, news := changes[p]
		if !news {
			continue
		}
		first, silent := is.LastSuccess.IsZero(), p.dir && (is.OK || is.LastSuccess.IsZero())
		// If it had to wait, it may have become wrong or unreadable in the meantime.
		is.OK, is.LastSuccess = p.heard.hash == p.accepted.hash, p.taken
		is.Revision, is.Cached = p.accepted.revision, p.accepted.cached
		switch {
		case !is.Cached.IsZero():
			is.Confirmed = is.Cached
		case is.OK:
			is.Confirmed = p.taken
		}
		is.Successes++
		if silent {
			continue
		}
		r := report{member: p.member, first: first, rules: is.Rules}
		r.Reload = Reload{Time: p.taken, Source: p.name, Hash: is.Hash, Number: l.number, Change: change,
			Revision: is.Revision, Cached: is.Cached, Left: p.left, Overrides: is.Overrides}
		if p.good != nil {
			r.parsed = p.good.parsed
			r.Warnings = slices.Clone(r.parsed.Warnings)
		}
		reports = append(reports, r)
	}
	l.clearLocked(planned)
	return reports
}

// clearLocked drops the pieces that a swap left out. The caller holds both locks.
func (l *Loader) clearLocked(planned map[*piece]bool) {
	l.members = slices.DeleteFunc(l.members, func(m *member) bool {
		if !m.begun && m.names != nil {
			return false // it begins
		}
		m.pieces = slices.DeleteFunc(m.pieces, func(p *piece) bool {
			return !planned[p] || p.good == nil && p.left
		})
		return m.gone()
	})
}

// compare adds to a swap its difference from the one before, and reports whether there is any.
func (l *Loader) compare(next *kept, set Set) bool {
	var last kept
	if len(l.history) > 0 {
		last = l.history[len(l.history)-1]
	}
	if slices.EqualFunc(next.pieces, last.pieces, func(a, b keptPiece) bool {
		return a.name == b.name && a.content.hash == b.content.hash
	}) {
		return false
	}
	before, after := last.contents(), next.contents()
	for _, p := range next.pieces {
		if !same(before[p.name], p.content) {
			next.Sources = append(next.Sources, p.name)
		}
	}
	for _, p := range last.pieces {
		if after[p.name] == nil {
			next.Sources = append(next.Sources, p.name)
		}
	}
	if one := next.Sources; len(one) == 1 && len(last.Overrides)+len(next.Overrides) == 0 {
		next.Change = Diff(setOf(before[one[0]]), setOf(after[one[0]]))
	} else {
		next.Change = Diff(l.set, set)
	}
	next.stamp()
	return true
}

// setOf returns the rules of a content, or no rules if it is nil.
func setOf(c *content) Set {
	if c == nil {
		return Set{}
	}
	return c.parsed.Set
}

func hashIn(c *content) string {
	if c == nil {
		return ""
	}
	return c.hash.String()
}

// same reports whether two contents are equal, or both nil.
func same(a, b *content) bool {
	return a == b || a != nil && b != nil && a.hash == b.hash
}

// concerned returns the pieces that have an ID which another has.
func (c *combination) concerned() map[*piece]bool {
	all := make(map[*piece]bool)
	for _, x := range c.conflicts {
		all[c.pieces[x.earlier.piece].piece] = true
		all[c.pieces[x.later.piece].piece] = true
	}
	return all
}

// contents returns the contents of the pieces, by name.
func (k kept) contents() map[string]*content {
	all := make(map[string]*content, len(k.pieces))
	for _, p := range k.pieces {
		all[p.name] = p.content
	}
	return all
}

func overridesOf(name string, all []Override) []Override {
	return slices.DeleteFunc(slices.Clone(all), func(o Override) bool { return o.Source != name && o.By != name })
}
