package hotspot

import (
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
)

// firstCalls is the number of calls after which a rule is logged if none of them had a value.
const firstCalls = 100

// watch counts a call without values, or with an unknown plan.
func (c *controller) watch(all []engine.Occurrence, inv *engine.Invocation) {
	if c.plans != nil {
		c.watchPlan(inv)
	}
	if len(all) == 0 || len(all) == 1 && c.rule.Missing != MissingNone && all[0].Value.IsEmpty() {
		c.missed(inv.Now())
	}
}

// missed counts a call that has no value. It must be called without locks, since it may write a log
// line.
func (c *controller) missed(now int64) {
	r := c.record
	if r.Found.Load() || r.Missed.Load() >= firstCalls {
		return
	}
	if r.Missed.Add(1) == firstCalls {
		c.engine.Log(&silence{c: c}, now)
	}
}

// found records that a call has a value. It is called for values that have no cell, so calls of
// known values don't touch the record.
func (c *controller) found(v *argument.Value) {
	if (!v.IsEmpty() || c.rule.Missing == MissingNone) && !c.record.Found.Load() {
		c.record.Found.Store(true)
	}
}

// silence is the topic of the log line about a rule whose first calls had no value.
type silence struct {
	pace engine.LogPace
	c    *controller
}

// LogPace returns the pace of the line.
func (s *silence) LogPace() *engine.LogPace { return &s.pace }

// Unreported returns false: the line is written once.
func (s *silence) Unreported() bool { return false }

// LogLine returns the line, which says what the rule does with such calls.
func (s *silence) LogLine() engine.LogLine {
	r := s.c.rule
	return engine.LogLine{
		Level: slog.LevelWarn, Message: fmt.Sprintf("penstock: a hotspot rule found no value in its first %d calls", firstCalls), Count: 1,
		Args: []any{"rule", r.ID, "resource", s.c.refusal.Resource, "looksAt", r.source(), "suchCalls", map[Missing]string{
			MissingNone: "not limited", MissingUnlimited: "not limited", MissingShared: "share one limit", MissingRefuse: "refused",
		}[r.Missing]},
	}
}
