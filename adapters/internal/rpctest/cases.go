package rpctest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// every matches all resources.
const every = ".*"

var (
	once     = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour}}}
	oneByOne = api.RuleSet{Isolation: []isolation.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Threshold: 1}}}
	queue    = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour,
		Behavior: flow.Throttle, MaxWait: 2 * time.Hour}}}
	// watched has a breaker for every resource, which never opens.
	watched   = api.RuleSet{Breaker: []breaker.Rule{{ID: "watched", Resource: every, Match: api.MatchRegex, Threshold: 1, MinCalls: 1000, Interval: time.Hour}}}
	oneNested = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: "nested", Threshold: 1, Interval: time.Hour}}}
)

// nest makes two nested calls and passes a refusal on through f.
func nest(f func(*Stage, context.Context, error) error) func(*Stage, context.Context) error {
	return func(s *Stage, ctx context.Context) error {
		for range 2 {
			e, err := s.of[server].Entry(ctx, "nested")
			if err != nil {
				return f(s, ctx, err)
			}
			e.Exit()
		}
		return nil
	}
}

// Cases returns the requirements for every adapter.
func Cases() []Case { return slices.Concat(unary(), streams(), codes(), costs(), levels()) }

func unary() []Case {
	panics := func(*Stage, context.Context) error { panic("as it says") }
	return []Case{
		{Name: "a call that passes", Run: func(s *Stage) error {
			return errors.Join(s.call(), s.counted(server, s.Unary, figures{pass: 1, done: 1}), s.counted(client, s.Unary, figures{pass: 1, done: 1}))
		}},
		{Name: "refused by flow", Server: once, Run: refuses(ResourceExhausted, "FLOW_BLOCKED", true)},
		{Name: "refused by a hotspot rule", ServerOpts: Options{User: "ann"}, Server: api.RuleSet{Hotspot: []hotspot.Rule{{ID: "secret",
			Resource: every, Match: api.MatchRegex, Param: "user", Threshold: 1, Interval: time.Hour}}},
			Run: refuses(ResourceExhausted, "HOTSPOT_BLOCKED", true)},
		{Name: "refused by a system rule", Server: api.RuleSet{System: []system.Rule{{ID: "secret", Metric: system.QPS, Threshold: 1, Interval: time.Hour}}},
			Run: refuses(Unavailable, "SYSTEM_BLOCKED", true)},
		{Name: "refused by authority", ServerOpts: Options{Origin: "ann"}, Server: api.RuleSet{Authority: []authority.Rule{{ID: "secret",
			Resource: every, Match: api.MatchRegex, List: authority.Deny, Origins: []string{"ann"}}}}, Run: func(s *Stage) error {
			return s.refused(s.call(), PermissionDenied, "AUTHORITY_BLOCKED", false)
		}},
		{Name: "refused by a breaker", Server: api.RuleSet{Breaker: []breaker.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex,
			Threshold: 0.5, MinCalls: 1, Recovery: time.Hour}}},
			Unary: func(*Stage, context.Context) error { return errors.New("down") }, Run: func(s *Stage) error {
				if err := s.is(s.call(), Unknown); err != nil {
					return err
				}
				if err := s.counted(server, s.Unary, figures{pass: 1, done: 1, failed: 1}); err != nil {
					return err
				}
				return s.refused(s.call(), Unavailable, "BREAKER_BLOCKED", true)
			}},
		{Name: "refused by isolation", Server: oneByOne, Unary: hold, Run: func(s *Stage) error {
			done := make(chan error, 1)
			go func() { done <- s.call() }()
			if err := s.meet.Arrived(); err != nil {
				return err
			}
			err := s.refused(s.call(), ResourceExhausted, "ISOLATION_BLOCKED", false)
			if err := s.meet.LetGo(); err != nil {
				return err
			}
			return errors.Join(err, <-done)
		}},
		{Name: "a call that waits until its deadline", Server: queue, Late: true, Run: func(s *Stage) error {
			if err := s.call(); err != nil {
				return err
			}
			return s.refused(s.waiting(server, s.call, func() { close(s.late) }), DeadlineExceeded, "GAVE_UP_WAITING", false)
		}},
		{Name: "a client that disconnects while it waits takes nothing", Server: queue, Run: func(s *Stage) error {
			if err := s.call(); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			err := s.waiting(server, func() error { return s.client.Unary(ctx) }, cancel)
			return errors.Join(s.is(err, Canceled), s.counted(server, s.Unary, figures{pass: 1, block: 1, done: 1}))
		}},
		{Name: "a client waits before the call", Client: queue, Run: func(s *Stage) error {
			if err := s.call(); err != nil || s.NoClients != "" {
				return err
			}
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			err := s.waiting(client, func() error { return s.client.Unary(ctx) }, cancel)
			return errors.Join(s.refused(err, Canceled, "GAVE_UP_WAITING", false), s.counted(client, s.Unary, figures{pass: 1, block: 1, done: 1}),
				s.counted(server, s.Unary, figures{pass: 1, done: 1}))
		}},
		{Name: "a call that can't be made", ServerOpts: Options{Resource: func(string) string { return strings.Repeat("x", 100_000) }},
			Run: func(s *Stage) error {
				err := s.refused(s.call(), Internal, "INVALID_CALL", false)
				if n := len(s.of[server].Tree().Resources); n != 0 {
					return fmt.Errorf("there are %d resources", n)
				}
				return err
			}},
		{Name: "a client's refusal is reported and a BlockError", Client: once, Run: func(s *Stage) error {
			if err := s.call(); err != nil || s.NoClients != "" {
				return err
			}
			err := s.call()
			if block, ok := errors.AsType[*api.BlockError](err); !ok || block.Rule != "secret" || !errors.Is(err, api.ErrBlocked) {
				return fmt.Errorf("the error is %w", err)
			}
			if n := s.comes.Load(); n != 1 {
				return fmt.Errorf("%d calls came to the server", n)
			}
			return errors.Join(s.is(err, ResourceExhausted), s.counted(client, s.Unary, figures{pass: 1, block: 1, done: 1}))
		}},
		{Name: "a client obeys an answer that says when to come back", Server: once, Client: api.RuleSet{Upstream: []upstream.Rule{{
			ID: "secret", Resource: every, Match: api.MatchRegex, Obey: true, MaxPause: 24 * time.Hour, Throttle: upstream.Throttle{K: 1}}}}, Run: func(s *Stage) error {
			if err := s.call(); err != nil || s.NoClients != "" {
				return err
			}
			if err := s.is(s.call(), ResourceExhausted); err != nil {
				return err
			}
			err := s.call()
			if block, ok := errors.AsType[*api.BlockError](err); !ok || block.Kind != api.KindUpstream {
				return fmt.Errorf("the error is %w", err)
			} else if wait, known := block.RetryAfter(); !known || wait < time.Hour-time.Second {
				return fmt.Errorf("the pause lasts %v", wait)
			}
			if n := s.comes.Load(); n != 2 {
				return fmt.Errorf("%d calls came to the server", n)
			}
			return s.counted(client, s.Unary, figures{pass: 2, block: 1, done: 2, failed: 1})
		}},
		{Name: "a resource of no name is not guarded", Server: once, Client: once,
			ServerOpts: Options{Resource: func(string) string { return "" }}, ClientOpts: Options{Resource: func(string) string { return "" }},
			Run: func(s *Stage) error { return errors.Join(s.call(), s.call(), s.call()) }},

		{Name: "a panic is a failure and leaks nothing", Unary: panics, Run: func(s *Stage) error {
			if err := s.call(); err == nil {
				return errors.New("the call passes")
			}
			if n := s.panicks.Load(); n != 1 {
				return fmt.Errorf("%d panics passed the guard", n)
			}
			return s.counted(server, s.Unary, figures{pass: 1, done: 1, failed: 1})
		}},
		{Name: "a client that disconnects while the handler runs is not a failure", Server: watched, Client: watched, Unary: hold, Run: func(s *Stage) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- s.client.Unary(ctx) }()
			if err := s.meet.Arrived(); err != nil {
				return err
			}
			cancel()
			return errors.Join(s.is(<-done, Canceled), s.leftOut(server, s.Unary, figures{pass: 1, done: 1}),
				s.leftOut(client, s.Unary, figures{pass: 1, done: 1}))
		}},
		{Name: "a deadline error is a failure", Unary: func(*Stage, context.Context) error {
			return fmt.Errorf("query: %w", context.DeadlineExceeded)
		}, Run: func(s *Stage) error {
			return errors.Join(s.is(s.call(), DeadlineExceeded), s.counted(server, s.Unary, figures{pass: 1, done: 1, failed: 1}))
		}},
		{Name: "a cancellation error is not a failure", Unary: func(*Stage, context.Context) error {
			return fmt.Errorf("query: %w", context.Canceled)
		}, Run: func(s *Stage) error {
			return errors.Join(s.is(s.call(), Canceled), s.counted(server, s.Unary, figures{pass: 1, done: 1}))
		}},
		{Name: "the user decides what a failure is", Unary: func(s *Stage, _ context.Context) error { return s.Error(NotFound, "") },
			ServerOpts: Options{Failure: func(error) bool { return true }}, ClientOpts: Options{FailureCodes: []Code{NotFound}},
			Run: outcome(NotFound, 1, 1)},
		{Name: "a code need not be a failure", Unary: func(s *Stage, _ context.Context) error { return s.Error(Unavailable, "") },
			ServerOpts: Options{Failure: func(error) bool { return false }}, ClientOpts: Options{FailureCodes: []Code{Internal}},
			Run: outcome(Unavailable, 0, 0)},

		{Name: "a nested refusal is reported, and is not a failure", Server: oneNested,
			Unary: nest(func(_ *Stage, _ context.Context, err error) error { return err }), Run: nested},
		{Name: "a wrapped nested refusal is reported, and no failure", Server: oneNested,
			Unary: nest(func(_ *Stage, _ context.Context, err error) error { return fmt.Errorf("billing secret: %w", err) }), Run: nested},
		{Name: "a nested refusal that the handler reports as Unavailable is not a failure", Server: oneNested,
			Unary: nest(func(s *Stage, ctx context.Context, err error) error {
				refusal.Tell(ctx, err)
				return s.Error(Unavailable, "come back")
			}), Run: func(s *Stage) error {
				return errors.Join(s.is(s.call(), Unavailable), s.counted(server, s.Unary, figures{pass: 1, done: 1}))
			}},
		{Name: "nested calls are counted below the call", ServerOpts: Options{Context: "rpc", Origin: "ann"}, Unary: nest(nil),
			Run: func(s *Stage) error { return errors.Join(s.call(), s.below(s.Unary)) }},
	}
}

func streams() []Case {
	list := []Case{
		{Name: "a stream that passes", Run: func(s *Stage) error {
			return errors.Join(s.drain(), s.counted(server, s.Stream, figures{pass: 1, done: 1, long: 1}),
				s.counted(client, s.Stream, figures{pass: 1, done: 1, long: 1}))
		}},
		{Name: "a stream is refused", Server: once, Run: func(s *Stage) error {
			if err := s.drain(); err != nil {
				return err
			}
			return errors.Join(s.refused(s.drain(), ResourceExhausted, "FLOW_BLOCKED", true),
				s.counted(server, s.Stream, figures{pass: 1, block: 1, done: 1, long: 1}))
		}},
		{Name: "a client's stream is refused", Client: once, Run: func(s *Stage) error {
			if err := s.drain(); err != nil || s.NoClients != "" {
				return err
			}
			err := s.drain()
			if !errors.Is(err, api.ErrBlocked) {
				return fmt.Errorf("the error is %w", err)
			}
			return errors.Join(s.refused(err, ResourceExhausted, "FLOW_BLOCKED", true),
				s.counted(client, s.Stream, figures{pass: 1, block: 1, done: 1, long: 1}))
		}},
		{Name: "a stream is one call until its end", Server: oneByOne, Stream: func(s *Stage, ctx context.Context, send func() error) error {
			if err := send(); err != nil {
				return err
			}
			return hold(s, ctx)
		}, Run: func(s *Stage) error {
			stream, err := s.client.Stream(s.ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(stream.Recv(), s.meet.Arrived()); err != nil {
				return err
			}
			if f := s.figures(server, s.Stream); f != (figures{pass: 1, inFlight: 1}) && f != (figures{pass: 1, inFlight: 1, long: 1}) {
				return fmt.Errorf("counted %+v", f)
			}
			if f := s.figures(client, s.Stream); f.inFlight != 1 && s.NoClients == "" {
				return fmt.Errorf("the client has counted %+v", f)
			}
			if err := s.refused(s.drain(), ResourceExhausted, "ISOLATION_BLOCKED", false); err != nil {
				return err
			}
			if err := s.meet.LetGo(); err != nil {
				return err
			}
			return errors.Join(stream.toEnd(), s.counted(server, s.Stream, figures{pass: 1, block: 1, done: 1, long: 1}))
		}},
		{Name: "a stream that its client ends has done well once it has sent something", Server: watched, Client: watched,
			Stream: func(s *Stage, ctx context.Context, send func() error) error {
				if err := send(); err != nil {
					return err
				}
				return hold(s, ctx)
			}, Run: func(s *Stage) error {
				ctx, cancel := context.WithCancel(s.ctx)
				defer cancel()
				stream, err := s.client.Stream(ctx)
				if err != nil {
					return err
				}
				if err := errors.Join(stream.Recv(), s.meet.Arrived()); err != nil {
					return err
				}
				cancel()
				if err := stream.toEnd(); err == nil {
					return errors.New("the stream ends well")
				}
				return errors.Join(s.counted(server, s.Stream, figures{pass: 1, done: 1, long: 1}), s.judged(server, s.Stream, 1, 0),
					s.counted(client, s.Stream, figures{pass: 1, done: 1, long: 1}), s.judged(client, s.Stream, 1, 0))
			}},
		{Name: "a panic of a stream is a failure and leaks nothing", Stream: func(*Stage, context.Context, func() error) error {
			panic("as it says")
		}, Run: func(s *Stage) error {
			if err := s.drain(); err == nil {
				return errors.New("the stream ends well")
			}
			if n := s.panicks.Load(); n != 1 {
				return fmt.Errorf("%d panics passed the guard", n)
			}
			return s.counted(server, s.Stream, figures{pass: 1, done: 1, failed: 1, long: 1})
		}},
		{Name: "a nested refusal of a stream is reported, and no failure", Server: oneNested,
			Stream: func(s *Stage, ctx context.Context, _ func() error) error {
				return nest(func(_ *Stage, _ context.Context, err error) error { return err })(s, ctx)
			}, Run: func(s *Stage) error {
				return errors.Join(s.refused(s.drain(), ResourceExhausted, "FLOW_BLOCKED", true),
					s.counted(server, s.Stream, figures{pass: 1, done: 1, long: 1}))
			}},
		{Name: "nested calls of a stream are counted below it", ServerOpts: Options{Context: "rpc", Origin: "ann"},
			Stream: func(s *Stage, ctx context.Context, _ func() error) error { return nest(nil)(s, ctx) },
			Run:    func(s *Stage) error { return errors.Join(s.drain(), s.below(s.Stream)) }},
		{Name: "a client's stream ends with an error", Stream: func(s *Stage, _ context.Context, send func() error) error {
			return errors.Join(send(), s.Error(DataLoss, ""))
		}, Run: func(s *Stage) error {
			return errors.Join(s.is(s.drain(), DataLoss), s.counted(client, s.Stream, figures{pass: 1, done: 1, failed: 1, long: 1}))
		}},
		{Name: "a client's stream ends with its context, even if nobody reads it", Stream: endless, Run: func(s *Stage) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			stream, err := s.client.Stream(ctx)
			if err != nil {
				return err
			}
			if err := stream.Recv(); err != nil {
				return err
			}
			cancel()
			return errors.Join(s.counted(client, s.Stream, figures{pass: 1, done: 1, long: 1}),
				s.counted(server, s.Stream, figures{pass: 1, done: 1, long: 1}))
		}},
		{Name: "a client's stream that is abandoned before its end is not a failure", Stream: endless, Run: func(s *Stage) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			stream, err := s.client.Stream(ctx)
			if err != nil || stream.Leave == nil {
				return err
			}
			if err := stream.Recv(); err != nil {
				return err
			}
			stream.Leave()
			return errors.Join(s.counted(client, s.Stream, figures{pass: 1, done: 1, long: 1}),
				s.counted(server, s.Stream, figures{pass: 1, done: 1, long: 1}))
		}},
	}
	for i := range list {
		list[i].OfStream = true
	}
	return list
}

// endless sends a response, and waits until its client disconnects.
func endless(s *Stage, ctx context.Context, send func() error) error {
	err := send()
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.meet.Over:
	}
	return err
}

// codes returns one case for each code that a handler may return.
func codes() (list []Case) {
	failures := map[Code]int64{Unknown: 1, DeadlineExceeded: 1, Internal: 1, Unavailable: 1, DataLoss: 1}
	for code := Canceled; code <= 16; code++ {
		client := failures[code]
		if code == ResourceExhausted {
			client = 1
		}
		list = append(list, Case{Name: fmt.Sprintf("the code %d", code),
			Unary: func(s *Stage, _ context.Context) error { return s.Error(code, "") }, Run: outcome(code, failures[code], client)})
	}
	return list
}

// refuses checks the refusal of a second unary call.
func refuses(code Code, reason string, retry bool) func(*Stage) error {
	return func(s *Stage) error {
		if err := s.call(); err != nil {
			return err
		}
		return errors.Join(s.refused(s.call(), code, reason, retry), s.counted(server, s.Unary, figures{pass: 1, block: 1, done: 1}))
	}
}

// outcome checks how a call with that code is counted.
func outcome(code Code, atServer, atClient int64) func(*Stage) error {
	return func(s *Stage) error {
		return errors.Join(s.is(s.call(), code), s.counted(server, s.Unary, figures{pass: 1, done: 1, failed: atServer}),
			s.counted(client, s.Unary, figures{pass: 1, done: 1, failed: atClient}))
	}
}

// nested checks a call whose handler responds with the refusal of a nested call.
func nested(s *Stage) error {
	return errors.Join(s.refused(s.call(), ResourceExhausted, "FLOW_BLOCKED", true), s.counted(server, s.Unary, figures{pass: 1, done: 1}))
}

// below checks that a nested call is counted below a resource in the context rpc, with the origin
// ann.
func (s *Stage) below(resource string) error {
	tree := s.of[server].Tree()
	entrance, ok := tree.Entrance("rpc")
	if !ok || len(entrance.Children) != 1 || entrance.Children[0].Name != resource ||
		len(entrance.Children[0].Children) != 1 || entrance.Children[0].Children[0].Name != "nested" {
		return fmt.Errorf("the tree is\n%s", text(s.of[server]))
	}
	if n, ok := tree.Origin("nested", "ann"); !ok || n.Lifetime.Pass != 2 {
		return fmt.Errorf("the nested call is not counted for ann:\n%s", text(s.of[server]))
	}
	return nil
}
