package flow

import "github.com/penstock-go/penstock/core"

// DecidesAtOnce reports whether Decide does what Ask and Take do: where one rule that
// holds takes for all, and has nobody wait in a queue.
func (rs *Rules) DecidesAtOnce() bool {
	return len(rs.takers) == 1 && rs.takers[0].queue == nil && rs.takers[0].rule.Mode == core.Enforce
}

// Decide is Take for a call that is not prioritized: it waits for nothing.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	if c := rs.takers[0]; c.plain && len(rs.controllers) == 1 && inv.HeldBucket(c.window) == nil {
		bucket, ok := c.window.TryAdd(inv.Now(), inv.Units(), c.limit)
		if !ok {
			return c.refusal
		}
		inv.ReserveBucket(c.window, bucket, c.limit)
		if c.next.Load() == nil { // looked at after it took, see takeBucket
			return nil
		}
	}
	return rs.Take(inv).Block // which takes nothing twice in a window
}
