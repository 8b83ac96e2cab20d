package rpctest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// thousand limits the tokens of each resource.
var thousand = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Unit: "tokens", Threshold: 1000, Interval: time.Hour}}}

// costs returns cases of calls that cost tokens: 300 at the server, and 200 at the client.
func costs() []Case {
	fails := func(s *Stage, _ context.Context) error { return s.Error(NotFound, "") }
	list := []Case{
		{Name: "a call keeps its estimate", Run: func(s *Stage) error {
			return errors.Join(s.call(), s.used(server, s.Unary, 300), s.used(client, s.Unary, 200))
		}},
		{Name: "a call settles what it has used", Unary: func(_ *Stage, ctx context.Context) error {
			api.FromContext(ctx).Settle("tokens", 50)
			return nil
		}, Run: func(s *Stage) error { return errors.Join(s.call(), s.used(server, s.Unary, 50)) }},
		{Name: "a call that fails gives back what it reserved", Unary: fails, Run: func(s *Stage) error {
			return errors.Join(s.is(s.call(), NotFound), s.used(server, s.Unary, 0), s.used(client, s.Unary, 0))
		}},
		{Name: "a call that fails keeps what it settled", Unary: func(s *Stage, ctx context.Context) error {
			api.FromContext(ctx).Settle("tokens", 50)
			return fails(s, ctx)
		}, Run: func(s *Stage) error { return errors.Join(s.is(s.call(), NotFound), s.used(server, s.Unary, 50)) }},
		{Name: "a call that panics gives back what it reserved", Unary: func(*Stage, context.Context) error { panic("as it says") },
			Run: func(s *Stage) error {
				if err := s.call(); err == nil {
					return errors.New("the call passes")
				}
				return s.used(server, s.Unary, 0)
			}},
		{Name: "a call whose client disconnects keeps its estimate", Unary: hold, Run: func(s *Stage) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- s.client.Unary(ctx) }()
			if err := s.meet.Arrived(); err != nil {
				return err
			}
			cancel()
			return errors.Join(s.is(<-done, Canceled), s.used(server, s.Unary, 300), s.used(client, s.Unary, 200))
		}},
		{Name: "a stream asks for more and settles", OfStream: true, Stream: func(_ *Stage, ctx context.Context, send func() error) error {
			e := api.FromContext(ctx)
			if err := e.More(ctx, "tokens", 701); !errors.Is(err, api.ErrBlocked) {
				return fmt.Errorf("701 more: %w", err)
			}
			if err := e.More(ctx, "tokens", 600); err != nil {
				return err
			}
			e.Settle("tokens", 850)
			return send()
		}, Run: func(s *Stage) error { return errors.Join(s.drain(), s.used(server, s.Stream, 850)) }},
		{Name: "a stream that fails before its first message gives back what it reserved", OfStream: true,
			Stream: func(s *Stage, ctx context.Context, _ func() error) error { return fails(s, ctx) }, Run: func(s *Stage) error {
				return errors.Join(s.is(s.drain(), NotFound), s.used(server, s.Stream, 0), s.used(client, s.Stream, 0))
			}},
		{Name: "a stream that fails after a message keeps its estimate", OfStream: true,
			Stream: func(s *Stage, ctx context.Context, send func() error) error {
				if err := send(); err != nil {
					return err
				}
				return fails(s, ctx)
			}, Run: func(s *Stage) error {
				return errors.Join(s.is(s.drain(), NotFound), s.used(server, s.Stream, 300), s.used(client, s.Stream, 200))
			}},
	}
	for i := range list {
		c := &list[i]
		c.Server, c.Client, c.ServerOpts, c.ClientOpts = thousand, thousand, Options{Cost: 300}, Options{Cost: 200}
	}
	return list
}

// used waits until no call of a resource is in flight and its calls have used that many tokens.
func (s *Stage) used(at int, resource string, want int64) error {
	if at == client && s.NoClients != "" {
		return nil
	}
	return s.until(fmt.Sprintf("%q has used %d tokens", resource, want), func() bool {
		all := s.of[at].UnitStats(resource)
		return len(all) == 1 && all[0].Total.Used() == want && s.figures(at, resource).inFlight == 0
	})
}
