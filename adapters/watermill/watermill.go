// Package penstockwatermill guards the handlers of watermill's router:
//
//	router.AddMiddleware(penstockwatermill.Middleware())
//
// A message that no rule refuses is handled as an inbound call of the resource "message" and the
// handler's name, as "message send-mail". A refused message is not nacked, since brokers would
// redeliver it immediately: it waits until the rule would admit it and tries again, until its
// context is done. So a limit slows a consumer down, and nothing is lost. The handler returns an
// error only where waiting doesn't help: for refusals by an authority rule, and for calls that
// can't be made; put such messages on a poison queue. While the guard drains, messages that may not
// run wait until the router closes.
//
// Breakers count an error of the handler as a failure, and a panic, which continues. They leave out
// a message whose context was canceled, and one whose handler returns the refusal of a call that it
// made. Calls that the handler makes with the message's context are counted below its own.
//
// A waiting message is neither acked nor nacked: a broker with a deadline for that may deliver it
// again. Everything here is safe for concurrent use.
//
// The page docs/adapters/watermill.md has examples.
package penstockwatermill

import (
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how handlers are guarded. If two options conflict, the later one wins.
type Option func(*guard)

type guard struct {
	api     *api.Guard
	name    func(*message.Message) string
	origin  func(*message.Message) string
	options func(*message.Message) []api.Option
	failure func(error) bool
	pause   time.Duration
}

// On uses g instead of the default guard.
func On(g *api.Guard) Option { return func(to *guard) { to.api = g } }

// Resource names the resource of a message; "" lets it pass unguarded. Use few names.
func Resource(name func(*message.Message) string) Option { return func(to *guard) { to.name = name } }

// Origin sets the sender of a message; "", the default, means no particular sender.
func Origin(of func(*message.Message) string) Option { return func(to *guard) { to.origin = of } }

// WithOptions makes calls with the options that f returns for their messages, such as api.Param for
// hotspot rules.
func WithOptions(f func(*message.Message) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// Failure decides which errors of handlers breakers count as failures; the default is all. It does
// not run for refusals.
func Failure(f func(error) bool) Option { return func(to *guard) { to.failure = f } }

// Pause sets how long a refused message waits if the rule can't tell when it would admit it, as
// with a concurrency limit. 0 means 100 ms.
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

// enter retries until the message is admitted.
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

// failed returns the error for [api.Admitted.Fail], or nil if the handler did not fail. Fail itself
// checks whether the message's context was canceled.
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
