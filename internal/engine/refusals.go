package engine

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Record counts the calls of a rule since it was loaded, at all resources, including resources that
// have left and may be forgotten. It is kept when the rule changes. The zero value is ready. It is
// safe for concurrent use.
type Record struct {
	Refused       stat.Tally // calls; see NewCounted
	ShadowBlocked stat.Tally // calls that the rule would have rejected, if it were not in shadow mode
	Asked         shared.Bool
	Notices       shared.Int64 // see family.Notifier

	// Found is set once a call had the value of a hotspot rule; Missed counts the first calls
	// without it.
	Found  shared.Bool
	Missed shared.Int64
}

// refusals counts the rejected calls of one rule and resource, and how many the block log has
// reported.
type refusals struct {
	total    stat.Tally
	reported shared.Int64 // of total
	pace     LogPace
	first    shared.Pointer[sampled] // the first one that no line has reported
	record   shared.Pointer[Record]  // of the rule, where they count as well; nil if it has none
	// direct is record once first is set. While it is nil, the next rejection takes the slow path.
	direct shared.Pointer[Record]
}

// counted is the rule behind a rejection that an engine counts, or nil if there are no more
// details.
type counted struct {
	rule core.Refuser
	*refusals
}

func (c *counted) RetryAfter() (wait time.Duration, known bool) {
	if c.rule == nil {
		return 0, false
	}
	return c.rule.RetryAfter()
}

func (c *counted) Limit() (limit float64, known bool) {
	if c.rule == nil {
		return 0, false
	}
	return c.rule.Limit()
}

// Window returns 0 for a rule that limits no rate.
func (c *counted) Window() time.Duration { return windowOf(c.rule) }

// SpendsRetries reports whether the rejection matches [core.ErrRetryBudget].
func (c *counted) SpendsRetries() bool {
	r, ok := c.rule.(interface{ SpendsRetries() bool })
	return ok && r.SpendsRetries()
}

func windowOf(rule core.Refuser) time.Duration {
	if w, ok := rule.(interface{ Window() time.Duration }); ok {
		return w.Window()
	}
	return 0
}

// refusalsOf returns nil for an error made by hand, which is neither counted nor logged.
func refusalsOf(b *core.BlockError) *refusals {
	if c, ok := b.Refuser().(*counted); ok {
		return c.refusals
	}
	return refusalsOfNeed(b)
}

// refusalsOfNeed is refusalsOf for the rejections of [Needing]. It is not inlined, so that refusalsOf is.
//
//go:noinline
func refusalsOfNeed(b *core.BlockError) *refusals {
	if x, ok := b.Refuser().(interface{ countedWith() *refusals }); ok {
		return x.countedWith()
	}
	return nil
}

// NewCounted returns the rejection that b describes. It is counted in the record of its rule and,
// for the block log, by itself or, if with is not nil, together with with. So a changed rule
// continues its count, and the rejections of single values count as their rule's. rule and record
// may be nil.
func NewCounted(b core.BlockError, rule core.Refuser, record *Record, with *core.BlockError) *core.BlockError {
	var r *refusals
	if with != nil {
		r = refusalsOf(with)
	} else {
		r = new(refusals)
	}
	r.record.Store(record) // a new one if with is from a rule with that ID that was removed in between
	r.direct.Store(nil)
	return core.NewBlockError(b, &counted{rule, r})
}

// Needing returns the rejection b with other details: those of a call that needs more than one
// unit. It counts as b.
func Needing[R core.Refuser](b *core.BlockError, rule R) *core.BlockError {
	x := &needing[R]{rule: rule, refusals: refusalsOf(b)}
	x.block = *core.NewBlockError(*b, x)
	return &x.block
}

// needing is a rejection and the rule behind it in one object, as each call needs its own.
type needing[R core.Refuser] struct {
	block    core.BlockError
	rule     R
	refusals *refusals
}

func (x *needing[R]) countedWith() *refusals { return x.refusals }

func (x *needing[R]) RetryAfter() (wait time.Duration, known bool) { return x.rule.RetryAfter() }

func (x *needing[R]) Limit() (limit float64, known bool) { return x.rule.Limit() }

// Window is like that of a rejection without needs.
func (x *needing[R]) Window() time.Duration { return windowOf(x.rule) }

// logPause is the time between two lines of the log about one topic, or about panics.
const logPause = int64(time.Second)

// NoteRefusal counts a rejection of the call for the block log, and keeps it among the last ones of
// its resource if that is wanted. It reports whether a line is due, at most once per second, for
// [Engine.LogBlocked] to write.
func (inv *Invocation) NoteRefusal(b *core.BlockError) (due bool) {
	if keepers := inv.engine.keepers.Load(); keepers != 0 {
		inv.keep(b, keepers)
	}
	r := refusalsOf(b)
	if r == nil {
		return false
	}
	if record := r.direct.Load(); record != nil {
		stat.AddBoth(&r.total, &record.Refused, inv.lane, 1)
	} else {
		r.addFirst(inv, b)
	}
	return r.pace.due(inv.now)
}

// sampled is the origin and the value of a rejected call.
type sampled struct {
	origin string
	value  argument.Value
}

var nobody sampled

// addFirst counts a rejection, and keeps its origin and value if it is the first of the next line
// of the block log. Code that changes record sets direct to nil afterwards: so direct is the
// record, or the goroutine that stores an older one here finds that it has changed.
func (r *refusals) addFirst(inv *Invocation, b *core.BlockError) {
	if r.first.Load() == nil {
		s := &nobody
		if origin := inv.Origin(); origin != "" || !b.Value.IsNone() {
			s = &sampled{origin, b.Value}
		}
		r.first.CompareAndSwap(nil, s)
	}
	record := r.record.Load()
	if record == nil {
		r.total.Add(inv.lane, 1)
		return
	}
	stat.AddBoth(&r.total, &record.Refused, inv.lane, 1)
	for {
		r.direct.Store(record)
		now := r.record.Load()
		if now == record {
			return
		}
		record = now
	}
}

// unlogged returns the number of rejections that no line has reported yet, and counts them as
// reported.
func (r *refusals) unlogged() int64 {
	for {
		total, reported := r.total.Load(), r.reported.Load()
		if total <= reported { // less if another goroutine has just reported later ones
			return 0
		}
		if r.reported.CompareAndSwap(reported, total) {
			return total - reported
		}
	}
}
