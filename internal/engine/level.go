package engine

import (
	"context"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// level is the criticality that a call or a context was given, as its distance from CriticalPlus
// plus 1; 0 if it was given none.
type level uint8

func levelOf(l core.Level) level {
	if !l.Valid() {
		l = core.Critical
	}
	return level(l - core.CriticalPlus + 1)
}

// or returns the level, or the other one if this is none.
func (l level) or(other level) level {
	if l == 0 {
		return other
	}
	return l
}

// level returns the criticality that l stands for.
func (l level) level() core.Level {
	if l == 0 {
		return core.Critical
	}
	return core.CriticalPlus + core.Level(l-1)
}

// WithCriticality returns a context whose calls have that level; see api.WithCriticality.
func WithCriticality(ctx context.Context, of core.Level) context.Context {
	c := derived(ctx)
	c.level = levelOf(of)
	return carrying(ctx, c)
}

// CriticalityOf returns the level that ctx was given, or false if it was given none.
func CriticalityOf(ctx context.Context) (of core.Level, given bool) {
	c := ContextOf(ctx)
	if c == nil {
		return core.Critical, false
	}
	return c.level.level(), c.level != 0
}

// Criticality sets the level of the call.
func Criticality(of core.Level) Option { return Option{kind: optionCriticality, level: levelOf(of)} }

// Level returns the criticality of the call: its own, or that of its context.
func (inv *Invocation) Level() core.Level {
	if c := inv.context; c != nil {
		return inv.level.or(c.level).level()
	}
	return inv.level.level()
}

// WithReceived returns a context with the level that another process named; see
// api.Guard.WithReceivedCriticality.
func (e *Engine) WithReceived(ctx context.Context, word string, atMost core.Level) context.Context {
	word, _, _ = strings.Cut(word, ";") // parameters may follow
	word = strings.TrimSpace(word)
	var of core.Level
	if word != "" && of.UnmarshalText([]byte(word)) != nil && e.unknownLevels.Add(1) == 1 {
		e.logger.Warn("penstock: a caller named an unknown criticality, which counts as critical; this is logged once", "criticality", logged(word))
	}
	return WithCriticality(ctx, max(of, atMost))
}

// UnknownLevels returns the number of unknown words among those received.
func (e *Engine) UnknownLevels() int64 { return e.unknownLevels.Load() }
