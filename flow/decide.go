package flow

import "github.com/penstock-go/penstock/core"

// DecidesAtOnce reports whether Decide does what Ask and Take do: where one rule that
// holds takes for all, and has nobody wait in a queue.
func (rs *Rules) DecidesAtOnce() bool {
	return rs.TakesAtOnce() && rs.takers[0].rule.Mode == core.Enforce
}

// Decide is Take for a call that is not prioritized: it waits for nothing.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError { return rs.Take(inv).Block }
