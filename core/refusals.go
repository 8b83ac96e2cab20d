package core

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Refuser is the rule behind a refusal, which is asked when a caller wants to know more;
// see the methods of [BlockError] of the same names. It is safe for concurrent use.
type Refuser interface {
	RetryAfter() (wait time.Duration, known bool)
	Limit() (limit float64, known bool)
}

// Record is what a rule has done since it was loaded, at all resources: those that have left,
// and may be forgotten, too. It stays as the rule changes. The zero value is ready. It is safe
// for concurrent use.
type Record struct {
	Refused       stat.Tally // calls; see NewBlockError
	ShadowBlocked stat.Tally // calls that the rule would have refused, if it were not in shadow mode
	Asked         shared.Bool
}

// refusals is how often a rule refused calls of one resource, and how far the block log has told
// it.
type refusals struct {
	total  stat.Tally
	told   shared.Int64 // of total
	pace   LogPace
	record shared.Pointer[Record] // of the rule, where they count as well; nil if it has none
}

// NewBlockError returns the refusal that b describes, counted in the record of its rule, and for
// the block log by itself, or with another one that is not nil. So a rule that was changed counts
// on where it left off, and the refusals of single values count as their rule's. rule and record
// may be nil.
func NewBlockError(b BlockError, rule Refuser, record *Record, with *BlockError) *BlockError {
	b.rule, b.refusals = rule, nil
	if with != nil {
		b.refusals = with.refusals
	} else {
		b.refusals = new(refusals)
	}
	b.refusals.record.Store(record) // another one if with is of a rule with that ID which was gone meanwhile
	return &b
}

// logPause is the time between two lines of the block log about one rule and
// resource.
const logPause = int64(time.Second)

// NoteRefusal counts a refusal of the call for the block log, and keeps it among the last ones
// of its resource where somebody asked for those. It reports whether a line is due, at most once a
// second, which is for [Engine.LogBlocked] to write.
func (inv *Invocation) NoteRefusal(b *BlockError) (due bool) {
	if inv.engine.keepers.Load() != 0 {
		inv.keep(b)
	}
	r, lane, now := b.refusals, inv.lane, inv.now
	if r == nil {
		return false
	}
	if record := r.record.Load(); record != nil {
		stat.AddBoth(&r.total, &record.Refused, lane, 1)
	} else {
		r.total.Add(lane, 1)
	}
	return r.pace.due(now)
}

// unlogged returns the refusals that no line has told yet, which are told now.
func (e *BlockError) unlogged() int64 {
	for r := e.refusals; r != nil; {
		total, told := r.total.Load(), r.told.Load()
		if total <= told { // less if somebody tells what came since
			return 0
		}
		if r.told.CompareAndSwap(told, total) {
			return total - told
		}
	}
	return 0
}
