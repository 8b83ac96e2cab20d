package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
)

// refused checks in whose name a call was refused when it came.
func (v *verdictRound) refused(c *call, refusers []keeper) error {
	var block *core.BlockError
	if !errors.As(c.err, &block) {
		return fmt.Errorf("%s: %w", c, c.err)
	}
	by := ruleID{block.Kind, block.Rule}
	var may []ruleID
	for _, k := range refusers {
		if k.is() == by {
			return v.retry(c, k, block)
		}
		may = append(may, k.is())
	}
	return fmt.Errorf("%s: refused by %v, but by the log of calls only %v may refuse it", c, by, may)
}

// retry checks when a refused call may come again, where a rule counts on one node.
func (v *verdictRound) retry(c *call, k keeper, block *core.BlockError) error {
	after, known := block.RetryAfter()
	if what := tokenRetry(&v.ledger, k, c, block); what != "" {
		return fmt.Errorf("%s: refused by %v, to come again after %v, %s", c, k.is(), after, what)
	}
	w, ok := k.(*windowKeeper)
	if !ok || w.low != w.high || w.low == 0 || w.looks || w.varies {
		return nil
	}
	p, _ := w.where(&v.ledger, c)
	v.checked.Add(1)
	if !known {
		return fmt.Errorf("%s: refused by %v, and nobody knows when to come again", c, k.is())
	}
	log, then := w.at(&v.ledger, p), v.ledger.now+int64(after)
	if _, perhaps := log.fits(log.number(then), 1, w.low, w.high); !perhaps {
		return fmt.Errorf("%s: refused by %v, to come again after %v, and then not a single unit fits", c, k.is(), after)
	}
	if after > 0 {
		if surely, _ := log.fits(log.number(then-1), 1, w.low, w.high); surely {
			return fmt.Errorf("%s: refused by %v, to come again after %v, and one unit fits before", c, k.is(), after)
		}
	}
	return nil
}

// tokenRetry says what is wrong with when a call may come again that a token bucket refused.
func tokenRetry(l *ledger, k keeper, c *call, block *core.BlockError) string {
	after, known := block.RetryAfter()
	switch k := k.(type) {
	case *tokenKeeper:
		if !math.IsInf(k.cost, 1) {
			return k.at(l, c).checkRetry(l.now, int64(after), c.units, k.size, known)
		}
	case *valueKeeper:
		for value, times := range k.of(c) {
			if argument.Of(value) == block.Value && k.tells(c, value) {
				return k.log(c.resource, value).tokens.checkRetry(l.now, int64(after), c.units*times, k.size(), known)
			}
		}
	}
	return ""
}

// ran checks that a call runs when it should, and notes that it does.
func (v *verdictRound) ran(c *call) error {
	least, most := v.ledger.due(c)
	now, came := sinceStart(v.ledger.now), sinceStart(c.came)
	v.checked.Add(1)
	switch {
	case now < least-hair || !c.movable && now < came+float64(c.opinion.least):
		return fmt.Errorf("%s: runs at %v, which is too early: not before %v", c, v.at(), time.Duration(max(least, came+float64(c.opinion.least))))
	case now > max(most+hair, came+float64(c.opinion.most)) && now > came:
		return fmt.Errorf("%s: runs at %v, which is too late: at %v at the latest", c, v.at(), time.Duration(max(most, came+float64(c.opinion.most))))
	}
	v.ledger.ran(c)
	v.running = append(v.running, c)
	v.passes[c.resource] += c.units
	return nil
}

// refusedLate checks that a call which has waited was refused by a rule that may do so.
func (v *verdictRound) refusedLate(c *call) error {
	v.blocks[c.resource] += c.units
	v.ledger.left(c)
	var block *core.BlockError
	if !errors.As(c.err, &block) {
		return fmt.Errorf("%s: %w", c, c.err)
	}
	switch block.Kind {
	case core.KindAdaptive, core.KindBreaker, core.KindIsolation:
		return nil
	}
	return fmt.Errorf("%s: refused after its wait by %v", c, ruleID{block.Kind, block.Rule})
}
