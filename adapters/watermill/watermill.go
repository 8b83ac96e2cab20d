// Package penstockwatermill guards the handlers of watermill's router:
//
//	router.AddMiddleware(penstockwatermill.Middleware())
//
// A message that no rule refuses is handled as an inbound call of the resource "message" and
// the handler's name, as "message send-mail". One that is refused is not sent back, since brokers
// would deliver it again immediately: it waits until the rule would let it in, and asks again, for
// as long as its context lives. So a limit slows a consumer down, and nothing is lost. Only what no
// time helps is returned as the handler's error: a refusal by an authority rule, and a call that
// can't be made; a poison queue is the place for such messages. It is the same while the guard drains:
// messages that may not run wait on until the router closes.
//
// Breakers take an error of the handler for a failure, and a panic, which continues. They leave out a
// message whose context was cancelled, and one whose handler returns the refusal of a call that it
// made. Calls that the
// handler makes with the message's context are counted below its own.
//
// While a message waits it is neither acknowledged nor sent back: a broker that gives
// consumers a time for that may deliver it once more. Everything here is safe for concurrent
// use.
package penstockwatermill

import (
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how handlers are guarded. Of two that say different things the later one
// holds.
type Option func(*guard)

type guard struct {
	api     *api.Guard
	name    func(*message.Message) string
	origin  func(*message.Message) string
	options func(*message.Message) []api.Option
	failure func(error) bool
	pause   time.Duration
}

// On makes calls go through a guard of one's own, not through the default one.
func On(g *api.Guard) Option { return func(to *guard) { to.api = g } }

// Resource names the resource of a message; "" lets it pass unguarded. Names should be few.
func Resource(name func(*message.Message) string) Option { return func(to *guard) { to.name = name } }

// Origin says who sent a message; "" means no particular sender, as without it.
func Origin(of func(*message.Message) string) Option { return func(to *guard) { to.origin = of } }

// WithOptions makes calls with the options that f returns for their messages, such as api.Param for
// hotspot rules.
func WithOptions(f func(*message.Message) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// Failure says which errors of handlers breakers take for failures, instead of all. It is not
// asked about refusals.
func Failure(f func(error) bool) Option { return func(to *guard) { to.failure = f } }

// Pause is how long a message waits that was refused by a rule which can't tell when it would
// let it in, as one on calls at once. 0 means 100 ms.
func Pause(d time.Duration) Option { return func(to *guard) { to.pause = d } }

// Middleware guards the handlers of a router, or one handler.
func Middleware(opts ...Option) message.HandlerMiddleware {
	g := &guard{name: handlerName}
	for _, o := range opts {
		o(g)
	}
	if g.api == nil {
		g.api = api.Default()
	}
	if g.pause <= 0 {
		g.pause = 100 * time.Millisecond
	}
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) { return g.handle(m, next) }
	}
}

// handlerName is "message" and the handler's name, or the topic's.
func handlerName(m *message.Message) string {
	name := message.HandlerNameFromCtx(m.Context())
	if name == "" {
		name = message.SubscribeTopicFromCtx(m.Context())
	}
	return "message " + name
}

func (g *guard) handle(m *message.Message, next message.HandlerFunc) (out []*message.Message, err error) {
	name := g.name(m)
	if name == "" {
		return next(m)
	}
	e, err := g.enter(m, name)
	if err != nil {
		return nil, err
	}
	defer e.Exit()
	before, returned := m.Context(), false
	defer func() {
		m.SetContext(before)
		if !returned {
			e.Fail(errPanicked)
		}
	}()
	m.SetContext(e.Context())
	out, err = next(m)
	returned = true
	e.Fail(g.failed(err))
	return out, err
}

// enter asks until the message is let in.
func (g *guard) enter(m *message.Message, name string) (api.Admitted, error) {
	ctx := m.Context()
	if g.origin != nil {
		ctx = api.WithOrigin(ctx, g.origin(m))
	}
	opts := []api.Option{api.Inbound()}
	if g.options != nil {
		opts = append(opts, g.options(m)...)
	}
	for {
		e, err := g.api.Entry(ctx, name, opts...)
		if err == nil {
			return e, nil
		}
		refused := refusal.Of(err)
		if refused.Reason != refusal.Blocked && refused.Reason != refusal.Closing || refused.Kind() == api.KindAuthority {
			return e, err
		}
		wait := g.pause
		if ms, known := refused.RetryAfter(time.Millisecond); known {
			wait = time.Duration(ms) * time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return e, errors.Join(err, ctx.Err())
		}
	}
}

// failed returns the error for [api.Admitted.Fail], nil if the handler did not fail. Fail itself checks whether
// the message's context was cancelled.
func (g *guard) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case refusal.Of(err).Reason != refusal.None:
		return api.ErrBlocked
	case g.failure == nil:
		return err
	case g.failure(err):
		return api.Certain(err)
	}
	return nil
}

var errPanicked = api.Certain(errors.New("the handler panicked"))
