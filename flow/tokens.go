package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// tokens enforces a rate with a burst, by the rule's token bucket.
type tokens struct {
	*controller
	bucket  *bucket
	size    int64            // of the bucket, in units
	tooMany *core.BlockError // for calls of more units than the bucket holds
}

func newTokens(c *controller, b *bucket) *tokens {
	return &tokens{c, b, c.rule.size(), engine.NewCounted(*c.refusal, never{c}, c.record, c.refusal)}
}

func (e *tokens) ask(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	if n := e.rule.amount(inv); !e.bucket.fits(inv.Now(), n, e.size) {
		return e.refuseTo(n)
	}
	return engine.Verdict{}
}

func (e *tokens) take(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	n := e.rule.amount(inv)
	if e.rule.Unit != "" {
		take, ok := e.bucket.takeFor(inv.Now(), n, e.size)
		if !ok {
			return e.refuseTo(n)
		}
		inv.Reserve(engine.Reservation{Holder: e.bucket, Units: n, Token: take, Undo: e.rule.overdrawn(e.size)})
		inv.SettleBy(e.rule.Unit)
		return engine.Verdict{}
	}
	taken, ok := e.bucket.take(inv.Now(), n, e.size)
	if !ok {
		return e.refuseTo(n)
	}
	inv.Reserve(engine.Reservation{Holder: e.bucket, Units: n, Token: taken.No, Undo: taken.At})
	return engine.Verdict{}
}

// refuseTo returns the refusal of n units, which may be more than the bucket ever holds.
func (e *tokens) refuseTo(n int64) engine.Verdict {
	if n > e.size {
		return engine.Verdict{Block: e.tooMany}
	}
	if e.rule.Unit != "" {
		return e.refuseUnits(n)
	}
	return e.refuse()
}

func (e *tokens) retryAfter(now, n int64) (wait time.Duration, known bool) {
	if n > e.size {
		return 0, false
	}
	return e.bucket.retryAfter(now, n, e.size), true
}

func (e *tokens) idle(now int64) bool { return e.bucket.full(now) }

func (e *tokens) explain(inv *engine.Invocation, _ *node.StatisticNode, j *core.Judgement) {
	now, units := inv.Now(), e.rule.amount(inv)
	e.bucket.mu.Lock()
	left := e.bucket.tokens // a copy
	e.bucket.mu.Unlock()
	inv.JudgeTokens(j, left, units, e.size)
	j.Measures = []core.Measure{engine.MeasureTokens(left, now, e.size)}
}

// never is the refusal of a call of more units than the bucket holds.
type never struct{ *controller }

// RetryAfter is unknown: waiting doesn't help.
func (never) RetryAfter() (wait time.Duration, known bool) { return 0, false }
