package rules

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxRevisions is how many revisions are kept.
const MaxRevisions = 10

// Revision is one state of the rules of all sources together.
type Revision struct {
	Number uint64 // from 1, one more at each swap that changes the content of a source
	// Hash is the first 12 hex digits of a SHA-256, equal wherever the same contents are
	// combined in the same order: of the content, if only one source has rules, otherwise of the
	// contents' hashes one after another.
	Hash         string
	Time         time.Time
	Sources      []string   // whose content changed, or that are gone
	Change       Change     // of what is in force, from the revision before
	Rules        int        // in force
	Overrides    []Override // in force, see [Loader.LaterWins]
	RolledBackTo uint64     // the revision that [Loader.Rollback] brought back; 0 if it was a load
}

// String returns it in one line, as in "7 6b3d0f9a51c2 +1 ~0 -0 rules.yaml".
func (r Revision) String() string {
	return fmt.Sprintf("%d %s %v %s", r.Number, r.Hash, r.Change, strings.Join(r.Sources, ", "))
}

// kept is a revision that can be brought back.
type kept struct {
	Revision
	pieces []keptPiece // those that had rules, in their order
}

type keptPiece struct {
	pieceName
	member  int
	content *content
}

// stamp completes the revision by its hash and the time.
func (k *kept) stamp() {
	k.Time = time.Now()
	switch len(k.pieces) {
	case 0:
	case 1:
		k.Hash = k.pieces[0].content.hash.String()
	default:
		h := sha256.New()
		for _, p := range k.pieces {
			_, _ = h.Write(p.content.hash[:]) // a hash takes everything
		}
		k.Hash = hash(h.Sum(nil)).String()
	}
}

// Revisions returns the last [MaxRevisions] revisions, the newest last: that is the one in force.
func (l *Loader) Revisions() []Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Revision, len(l.history))
	for i, k := range l.history {
		all[i] = k.Revision
	}
	return all
}

// Rollback brings back the rules of an earlier revision, as a new one. It is an error if that
// revision is no longer kept, or if its rules can't be put in force; nothing changes then.
//
// Each source whose content was different then is pinned to that content: it stays in force until
// the source has news, that is, until its content changes or, for a file, it leaves its directory.
// Finding a file unchanged changes nothing, and neither does an error. News of one source doesn't
// end the pin of another. A source that had no rules then has none until it has news. A source that
// is gone by now gets back the rules it had, until a source of that name has news or a Rollback
// goes to a revision without it.
//
// Rolling back to the newest revision does nothing; rolling back to one before an earlier
// Rollback undoes that. It is logged, but listeners are not called.
func (l *Loader) Rollback(number uint64) error {
	done, err := l.rollBack(number)
	if err == nil && done.Number != 0 {
		_ = survive(func() {
			l.log.Info("penstock: rolled back", "to", number, "revision", done.Number, "hash", done.Hash,
				"rules", done.Rules, "change", done.Change.String(), "what", done.Change.told())
		})
	}
	return err
}

func (l *Loader) rollBack(number uint64) (done Revision, err error) {
	l.loading.Lock()
	defer l.loading.Unlock() // also after a panic of what applies
	i := slices.IndexFunc(l.history, func(k kept) bool { return k.Number == number })
	switch {
	case i < 0 && len(l.history) == 0:
		return done, fmt.Errorf("penstock: there is no revision %d, for no rules were loaded", number)
	case i < 0:
		return done, fmt.Errorf("penstock: revision %d is not kept: there are %d to %d", number, l.history[0].Number, l.number)
	case i == len(l.history)-1:
		return done, nil
	}
	then := l.history[i].contents()
	undo := l.renameCodeLocked(l.history[i])
	committed := false
	defer func() {
		if !committed {
			undo()
		}
	}()
	plan := l.planLocked()
	for i, s := range plan {
		plan[i].content = then[s.piece.name]
		delete(then, s.piece.name)
	}
	var back []*member // sources that are gone
	for _, p := range l.history[i].pieces {
		if c := then[p.name]; c != nil {
			m := &member{loader: l, number: p.member, ctx: context.Background(), kept: true}
			m.pieces = []*piece{{pieceName: p.pieceName, member: m, taken: time.Now(), wanted: c, status: Status{Source: p.name, OK: true}}}
			back = append(back, m)
			plan = append(plan, said{m.pieces[0], c})
		}
	}
	inOrder(plan)
	l.mu.Lock()
	laterWins := l.laterWins
	l.mu.Unlock()
	if err := l.apply(combine(plan, laterWins).set); err != nil {
		return done, err
	}
	l.mu.Lock()
	l.members = append(l.members, back...)
	l.mu.Unlock()
	before := l.number
	committed = true
	l.commit(combine(plan, laterWins), nil, number)
	if l.number == before {
		return done, nil
	}
	return l.history[len(l.history)-1].Revision, nil
}

// renameCodeLocked gives code the name that it had in a revision, if it has another now: what code loads is
// one source, whether from a file or not, and the next load replaces what comes back. The caller holds
// loading.
func (l *Loader) renameCodeLocked(k kept) (undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.codeLocked()
	if m == nil {
		return func() {}
	}
	before := m.pieces
	i := slices.IndexFunc(k.pieces, func(p keptPiece) bool { return p.member == m.number })
	if i < 0 || len(before) > 0 && before[0].name == k.pieces[i].name || l.liveLocked()[k.pieces[i].name] {
		return func() {}
	}
	p := &piece{status: Status{OK: true}}
	if len(before) > 0 {
		*p = *before[0]
	}
	p.pieceName, p.member, p.yields = k.pieces[i].pieceName, m, k.pieces[i].name != codeName
	p.status.Source = p.name
	m.pieces = []*piece{p}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		m.pieces = before
	}
}
