package api

import (
	"context"

	"github.com/penstock-go/penstock/internal/engine"
)

// WithContext returns a context whose calls come in through the named context, an entrance to the
// program such as "http" or "batch"; "" is the default one. They keep the origin of ctx, and are
// nested in no call: they begin at that context's entrance. A nil ctx is [context.Background].
//
// Names that an outsider can choose are bounded by [Config].Caps, as are origins. With a name of
// more than pattern.MaxName bytes every call is refused.
func WithContext(ctx context.Context, name string) context.Context {
	return engine.WithContext(ctx, name)
}

// WithOrigin returns a context whose calls are made by origin; "" means no particular caller. They
// keep the named context of ctx, and stay nested in the call that ctx belongs to, if any. A nil ctx
// is [context.Background].
//
// An origin should come from a trusted source, not from a header of the request. With an origin of
// more than pattern.MaxName bytes every call is refused.
func WithOrigin(ctx context.Context, origin string) context.Context {
	return engine.WithOrigin(ctx, origin)
}

// WithCriticality returns a context whose calls have that level, unless they name another with
// [Criticality]. They keep the named context and the origin of ctx, and stay nested in the call that
// ctx belongs to, if any. Client adapters send the level on. A nil ctx is [context.Background].
func WithCriticality(ctx context.Context, level Level) context.Context {
	return engine.WithCriticality(ctx, level)
}

// CriticalityOf returns the level that ctx got by [WithCriticality], for clients without an adapter to
// send on. given is false if it got none, and the level then [Critical].
func CriticalityOf(ctx context.Context) (level Level, given bool) { return engine.CriticalityOf(ctx) }

// WithReceivedCriticality is like [WithCriticality], for servers without an adapter: word is the level
// that the caller named, such as "sheddable", and atMost bounds it. The empty word is the default, and
// so are unknown words, which are counted in [Guard.UnknownCriticalities], and logged once. Whether
// the caller can be trusted is for the program to decide, since callers gain by naming a high level:
// pass the empty word for others. The context has a level in any case, so that client adapters replace
// a level that a proxy copies from its own caller.
func (g *Guard) WithReceivedCriticality(ctx context.Context, word string, atMost Level) context.Context {
	return g.engine.WithReceived(ctx, word, atMost)
}

// UnknownCriticalities returns the number of unknown words for levels that callers have named.
func (g *Guard) UnknownCriticalities() int64 { return g.engine.UnknownLevels() }

// WithRetry returns a context whose calls are retries, as if each had the option [Retry], including
// those nested in them: for clients behind an adapter. A nil ctx is [context.Background].
func WithRetry(ctx context.Context) context.Context { return engine.WithRetry(ctx) }

// FromContext returns the innermost call that ctx is nested in: in a handler behind an adapter, the
// call of the request. The zero value, which does nothing, if there is none; a call that has exited
// does nothing either.
func FromContext(ctx context.Context) Admitted { return Admitted{engine.EntryOf(ctx)} }

// Nested is the memory for a context that [Admitted.ContextIn] creates. The zero value is ready for
// use, once; it must not be copied.
type Nested struct{ engine.Nested }
