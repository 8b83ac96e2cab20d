package breaker

import (
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// journal is the log topic of one breaker: its changes, at most one line per second. It survives the
// revisions of the rule. Safe for concurrent use.
type journal struct {
	pace engine.LogPace

	mu       shared.Mutex // guards the fields below it
	reported State        // in the last line
	last     Change
	changes  int64 // since the last line
}

// note records a change, unless a newer one was recorded before.
func (j *journal) note(c Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Number < j.last.Number {
		return
	}
	j.last = c
	j.changes++
}

// LogPace returns the pace of the lines.
func (j *journal) LogPace() *engine.LogPace { return &j.pace }

// Unreported reports whether the breaker has changed since the last line.
func (j *journal) Unreported() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes > 0
}

// LogLine returns the line: the state as of the last line, the state now, and the reason.
func (j *journal) LogLine() engine.LogLine {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changes == 0 {
		return engine.LogLine{}
	}
	c := j.last
	line := engine.LogLine{Level: slog.LevelInfo, Message: "penstock: a breaker changed state", Count: j.changes, Args: []any{
		"resource", c.Resource, "rule", c.Rule, "from", j.reported.String(), "to", c.To.String(), "why", c.Why(), "at", c.At.UTC(),
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
	j.reported, j.changes = c.To, 0
	return line
}

// Why returns the reason for the change, in words, as in the log.
func (c Change) Why() string {
	if c.of == nil {
		return ""
	}
	return cause{c.From, c.Value, c.of}.of(c.To)
}

// cause is the reason for a breaker's state.
type cause struct {
	from  State
	value float64 // of Change
	terms *terms  // in effect at the change
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
		return "recovery is over: a call runs as a probe"
	case to == Open && c.from == HalfOpen && t.Strategy == SlowRatio:
		return "a probe took longer than " + shown.Duration(t.SlowRT)
	case to == Open && c.from == HalfOpen:
		return "a probe failed"
	case to == Open:
		return fmt.Sprintf("%s: %s, threshold %s", t.counted(), shown.Number(c.value), shown.Number(t.Threshold))
	case c.from == HalfOpen && t.Probes > 1:
		return fmt.Sprintf("%d probes in a row succeeded", t.Probes)
	case c.from == HalfOpen:
		return "the probe succeeded"
	}
	return "the ramp is over"
}
