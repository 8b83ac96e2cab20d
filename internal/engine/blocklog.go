package engine

import (
	"log/slog"

	"github.com/penstock-go/penstock/core"
)

// blocked is a topic of the block log: the refusals of one rule at one resource. Its lines name the
// caller and the value of the first of those that they count.
type blocked struct {
	b *core.BlockError
	*refusals
}

func (t blocked) LogPace() *LogPace { return &t.pace }

func (t blocked) Unreported() bool { return t.total.Load() > t.told.Load() }

func (t blocked) LogLine() LogLine {
	n := t.unlogged()
	args := []any{"kind", t.b.Kind.String(), "resource", t.b.Resource, "rule", t.b.Rule}
	if first := t.first.Load(); first != nil {
		t.first.Store(nil)
		t.direct.Store(nil) // afterwards, or a call could set it before first is gone
		if first.origin != "" {
			args = append(args, "origin", first.origin)
		}
		if !first.value.IsNone() {
			args = append(args, "value", first.value.String())
		}
	}
	return LogLine{Level: slog.LevelWarn, Message: "penstock: blocked", Count: n, Args: append(args, "count", n)}
}

// LogBlocked writes the line about a refusal that [Invocation.NoteRefusal] found due, unless there
// were so many lines in this second that it is left to a later line about several.
func (e *Engine) LogBlocked(b *core.BlockError, now int64) {
	if r := refusalsOf(b); r != nil {
		e.blockLog.tell(blocked{b, r}, now)
	}
}

// flushLogs writes what the log has not reported yet.
func (e *Engine) flushLogs() {
	e.changeLog.flush(func(func(LogTopic)) {})
	e.blockLog.flush(func(tell func(LogTopic)) {
		told := func(b *core.BlockError) {
			if r := refusalsOf(b); r != nil {
				tell(blocked{b, r})
			}
		}
		for _, family := range e.rules.Load().families {
			if family != nil {
				family.EachError(told)
			}
		}
		e.EachResource(func(r *Resource) { r.eachCustom(told) })
	})
}
