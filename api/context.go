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
