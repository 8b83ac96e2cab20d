package breaker

import (
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// journal is the log topic of one breaker: its changes, at most one line a second. It outlives the
// revisions of the rule. It is safe for concurrent use.
type journal struct {
	pace engine.LogPace

	mu      shared.Mutex
	told    State // as the log has it
	last    Change
	changes int64 // since the last line
}

// note remembers a change, unless a newer one was noted before.
func (j *journal) note(c Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Number < j.last.Number {
		return
	}
	j.last = c
	j.changes++
}

// LogPace is when the next line is due.
func (j *journal) LogPace() *engine.LogPace { return &j.pace }

// Unreported reports whether the breaker has changed since the last line.
func (j *journal) Unreported() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes > 0
}

// LogLine says which state the breaker was in at the last line, which it is in now, and why.
func (j *journal) LogLine() engine.LogLine {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changes == 0 {
		return engine.LogLine{}
	}
	c := j.last
	line := engine.LogLine{Level: slog.LevelInfo, Message: "penstock: a breaker changed its state", Count: j.changes, Args: []any{
		"resource", c.Resource, "rule", c.Rule, "from", j.told.String(), "to", c.To.String(), "why", c.Why(), "at", c.At.UTC(),
	}}
	if c.To == Open || c.To == ForcedOpen {
		line.Level = slog.LevelWarn
	}
	if j.changes > 1 {
		line.Args = append(line.Args, "changes", j.changes)
	}
	if c.of.Mode == spec.Shadow {
		line.Args = append(line.Args, "mode", c.of.Mode.String())
	}
	j.told, j.changes = c.To, 0
	return line
}

// Why is why the breaker changed, in words, as the log has it.
func (c Change) Why() string {
	if c.of == nil {
		return ""
	}
	return cause{c.From, c.Value, c.of}.of(c.To)
}

// cause is why a breaker went to its state.
type cause struct {
	from  State
	value float64 // of Change
	terms *terms  // by which it went
}

// of describes the cause in words.
func (c cause) of(to State) string {
	t := c.terms
	switch {
	case to == ForcedOpen || to == ForcedClosed:
		return "forced by hand"
	case c.from == ForcedOpen || c.from == ForcedClosed:
		return "released by hand"
	case to == HalfOpen:
		return "recovery is over: a call is let in as a probe"
	case to == Open && c.from == HalfOpen && t.Strategy == SlowRatio:
		return "a probe took longer than " + shown.Duration(t.SlowRT)
	case to == Open && c.from == HalfOpen:
		return "a probe failed"
	case to == Open:
		return fmt.Sprintf("%s: %s, threshold %s", t.counted(), shown.Number(c.value), shown.Number(t.Threshold))
	case c.from == HalfOpen && t.Probes > 1:
		return fmt.Sprintf("%d probes in a row ended well", t.Probes)
	case c.from == HalfOpen:
		return "the probe ended well"
	}
	return "the ramp is over"
}
