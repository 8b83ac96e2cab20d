package engine

import (
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/internal/quotalog"
	"github.com/penstock-go/penstock/internal/shared"
)

// quotas keeps the use of quotas over restarts. It is the topic of the log lines about writes that
// failed.
type quotas struct {
	log      *quotalog.Log // nil unless configured
	engine   *Engine
	pace     LogPace
	failed   shared.Int64
	reported shared.Int64
	latest   shared.Pointer[string]
}

// openQuotas opens the log of quotas if there is to be one.
func (e *Engine) openQuotas() (err error) {
	if e.config.QuotaLog == "" {
		return nil
	}
	q := &e.quotas
	q.engine = e
	if q.log, err = quotalog.Open(e.config.QuotaLog, e.Now, q.fail); err != nil {
		return fmt.Errorf("penstock: Config.QuotaLog: %w", err)
	}
	return nil
}

// QuotaLog returns the log that keeps the use of quotas, or nil.
func (e *Engine) QuotaLog() *quotalog.Log { return e.quotas.log }

// flush puts the slacks of new rules on the disk. If that fails, a line reports it, and keys wait for
// their first mark.
func (q *quotas) flush() {
	if q.log != nil {
		if err := q.log.Flush(); err != nil {
			q.fail(err)
		}
	}
}

func (q *quotas) close() {
	if q.log != nil {
		if err := q.log.Close(); err != nil {
			q.fail(err)
		}
	}
}

func (q *quotas) fail(err error) {
	text := err.Error()
	q.latest.Store(&text)
	q.failed.Add(1)
	q.engine.Log(q, q.engine.Now())
}

// LogPace returns the pace of the lines.
func (q *quotas) LogPace() *LogPace { return &q.pace }

// Unreported reports whether there are failures that no line has reported.
func (q *quotas) Unreported() bool { return q.failed.Load() > q.reported.Load() }

// LogLine returns the line about these failures.
func (q *quotas) LogLine() LogLine {
	n := q.failed.Load()
	return LogLine{
		Level: slog.LevelError, Message: "penstock: the quota log can't be written; quotas refuse calls beyond the marks that it has, until a write succeeds",
		Count: n - q.reported.Swap(n),
		Args:  []any{"path", q.engine.config.QuotaLog, "error", *q.latest.Load(), "failures", n},
	}
}
