package engine

import (
	"log/slog"

	"github.com/penstock-go/penstock/core"
)

// blocked is a topic of the block log: the rejections by one rule at one resource. Each line names
// the caller and the value of the first rejection that it counts.
type blocked struct {
	b *core.BlockError
	*refusals
}

func (t blocked) LogPace() *LogPace { return &t.pace }

func (t blocked) Unreported() bool { return t.total.Load() > t.reported.Load() }

func (t blocked) LogLine() LogLine {
	n := t.unlogged()
	args := []any{"kind", t.b.Kind.String(), "resource", t.b.Resource, "rule", t.b.Rule}
	if first := t.first.Load(); first != nil {
		t.first.Store(nil)
		t.direct.Store(nil) // last, or a call could set it before first is gone
		if first.origin != "" {
			args = append(args, "origin", first.origin)
		}
		if !first.value.IsNone() {
			args = append(args, "value", first.value.String())
		}
	}
	if t.b.Shed != "" {
		args = append(args, "shed", t.b.Shed)
	}
	return LogLine{Level: slog.LevelWarn, Message: "penstock: blocked", Count: n, Args: append(args, "count", n)}
}

// LogBlocked writes the line for a rejection that [Invocation.NoteRefusal] reported as due. If
// there were too many lines in this second, a later line covers several.
func (e *Engine) LogBlocked(b *core.BlockError, now int64) {
	if r := refusalsOf(b); r != nil {
		e.blockLog.report(blocked{b, r}, now)
	}
}

// flushLogs writes the lines that are still unwritten.
func (e *Engine) flushLogs() {
	e.changeLog.flush(func(func(LogTopic)) {})
	e.blockLog.flush(func(report func(LogTopic)) {
		logOne := func(b *core.BlockError) {
			if r := refusalsOf(b); r != nil {
				report(blocked{b, r})
			}
		}
		for _, family := range e.rules.Load().families {
			if family != nil {
				family.EachError(logOne)
			}
		}
		e.EachResource(func(r *Resource) { r.eachCustom(logOne) })
	})
}
