package rpctest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// status is the error type of a framework without a network.
type status struct {
	rpctest.Report
	err error
}

func (s *status) Error() string { return s.Text }
func (s *status) Unwrap() error { return s.err }

func code(err error) uint32 {
	s, ok := errors.AsType[*status](err)
	switch {
	case err == nil:
		return rpctest.OK
	case ok:
		return s.Code
	case errors.Is(err, context.Canceled):
		return rpctest.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpctest.DeadlineExceeded
	}
	return rpctest.Unknown
}

// reported returns the part of an error that a client receives.
func reported(err error) rpctest.Report {
	if s, ok := errors.AsType[*status](err); ok {
		return s.Report
	}
	return rpctest.Report{Code: code(err)}
}

// report turns a refusal's error into a status.
func report(err error) error {
	why := refusal.Of(err)
	if _, ok := errors.AsType[*status](err); ok || why.Reason == refusal.None {
		return err
	}
	g := why.GRPC()
	return &status{rpctest.Report{Code: g.Code, Reason: g.Reason, Domain: g.Domain, RetryDelay: g.RetryDelay, Text: g.Message}, err}
}

// guarded runs a call of a method, and ends it when the method has returned.
type guarded func(ctx context.Context, g *rpc.Guard, name string, o rpctest.Options, run func(context.Context) error, opts ...api.Option) error

func ours(ctx context.Context, g *rpc.Guard, name string, o rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
	if o.User != "" {
		opts = append(opts, api.Param("user", o.User))
	}
	if o.Cost > 0 {
		opts = append(opts, api.Cost("tokens", o.Cost))
	}
	c, err := g.Enter(ctx, name, o.Origin, opts...)
	if err != nil {
		return report(err)
	}
	defer c.Exit()
	err = run(context.WithValue(c.Below(), callKey{}, c))
	c.End(err)
	return report(err)
}

// callKey is the context key of the call that serves a stream, which is notified of sent messages.
type callKey struct{}

// remote is the context of a server's call: it ends with the client's, and has none of its values.
type remote struct{ context.Context }

func (remote) Value(any) any { return nil }

// direct is a framework without a network; at guards the server's calls, our code the client's.
func direct(at guarded) rpctest.Framework {
	const unary, stream = "/test/Unary", "/test/Stream"
	return rpctest.Framework{
		Unary: unary, Stream: stream, Reported: reported,
		Error: func(code rpctest.Code, text string) error {
			return &status{Report: rpctest.Report{Code: code, Text: text}}
		},
		Start: func(t testing.TB, s *rpctest.Service, atServer, atClient rpctest.Options) rpctest.Client {
			guard := func(o rpctest.Options, failures uint32) *rpc.Guard {
				g := &rpc.Guard{API: o.Guard, Context: o.Context, Failures: failures, CodeOf: code, Failure: o.Failure}
				if o.Cost > 0 {
					g.Refunds = []string{"tokens"}
				}
				if o.FailureCodes != nil {
					g.Failures = rpc.Codes(o.FailureCodes...)
				}
				return g
			}
			server, client := guard(atServer, rpc.ServerFailures), guard(atClient, rpc.ClientFailures)
			client.RetryAfter = func(_ context.Context, err error) time.Duration { return reported(err).RetryDelay }
			serve := func(ctx context.Context, name string, run func(context.Context) error, opts ...api.Option) (err error) {
				defer func() {
					if p := recover(); p != nil {
						s.Recovered()
						err = &status{Report: rpctest.Report{Code: rpctest.Internal, Text: fmt.Sprint(p)}}
					}
				}()
				if atServer.Resource != nil {
					name = atServer.Resource(name)
				}
				word := ""
				if level, given := api.CriticalityOf(ctx); given {
					word = level.String()
				}
				if ctx = s.Around(remote{ctx}); name == "" {
					return run(ctx)
				}
				if atServer.Levels {
					ctx = atServer.Guard.WithReceivedCriticality(ctx, word, atServer.AtMost)
				}
				return at(ctx, server, name, atServer, run, append(opts, api.Inbound())...)
			}
			// sent returns the part of an error that reaches the client.
			sent := func(err error) error {
				if err != nil {
					err = &status{Report: reported(err)}
				}
				return err
			}
			return rpctest.Client{
				Unary: func(ctx context.Context) error {
					call := func(context.Context) error {
						result := make(chan error, 1)
						go func() { result <- sent(serve(ctx, unary, s.Unary)) }()
						select {
						case err := <-result:
							return err
						case <-ctx.Done():
							return sent(ctx.Err())
						}
					}
					if atClient.Resource != nil && atClient.Resource(unary) == "" {
						return call(ctx)
					}
					return ours(ctx, client, unary, atClient, call)
				},
				Stream: func(ctx context.Context) (rpctest.Stream, error) {
					opts := []api.Option{api.LongLived()}
					if atClient.Cost > 0 {
						opts = append(opts, api.Cost("tokens", atClient.Cost))
					}
					c, err := client.Enter(ctx, stream, "", opts...)
					if err != nil {
						return rpctest.Stream{}, report(err)
					}
					ctx, cancel := context.WithCancel(ctx)
					responses, result := make(chan struct{}), make(chan error, 1)
					go func() {
						err := sent(serve(ctx, stream, func(ctx context.Context) error {
							return s.Stream(ctx, func() error {
								select {
								case responses <- struct{}{}:
									c.Answered()
									if serving, ok := ctx.Value(callKey{}).(*rpc.Call); ok {
										serving.Answered()
									}
									return nil
								case <-ctx.Done():
									return ctx.Err()
								}
							})
						}, api.LongLived()))
						c.End(err)
						c.Exit()
						result <- err
						cancel()
					}()
					return rpctest.Stream{Leave: cancel, Recv: func() error {
						select {
						case <-responses:
							return nil
						case err := <-result:
							if err == nil {
								err = io.EOF
							}
							return err
						}
					}}, nil
				},
			}
		},
	}
}

func TestCases(t *testing.T) { rpctest.Run(t, direct(ours)) }

// Each adapter has one mistake known from adapters of other libraries. The table notices each, in
// at least these cases.
func TestTheTableNoticesBrokenAdapters(t *testing.T) {
	// plain is the obvious implementation, except for how end treats the result.
	plain := func(end func(e api.Admitted, run func() error) error) guarded {
		return func(ctx context.Context, g *rpc.Guard, name string, _ rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
			e, err := g.API.Entry(ctx, name, opts...)
			if err != nil {
				return report(err)
			}
			return end(e, func() error { return run(e.Context()) })
		}
	}
	for mistake, broken := range map[string]struct {
		at    guarded
		cases []string
	}{
		"a panic leaks the entry": {plain(func(e api.Admitted, run func() error) error {
			err := run()
			e.Exit()
			return err
		}), []string{"a panic is a failure and leaks nothing", "a panic of a stream is a failure and leaks nothing"}},
		"failures are not reported": {plain(func(e api.Admitted, run func() error) error {
			defer e.Exit()
			return run()
		}), []string{"the code 2", "the code 14", "a client that disconnects while the handler runs is not a failure", "refused by a breaker", "a deadline error is a failure", "a panic is a failure and leaks nothing"}},
		"every error is a failure": {plain(func(e api.Admitted, run func() error) (err error) {
			defer e.ExitOn(&err)
			return run()
		}), []string{"the code 5", "the code 1"}},
		"a nested refusal is a failure": {plain(func(e api.Admitted, run func() error) error {
			err := report(run())
			e.Fail(errors.New("as it reads"))
			e.Exit()
			return err
		}), []string{"a nested refusal is reported, and is not a failure", "a nested refusal that the handler reports as Unavailable is not a failure"}},
		"the call ends before it runs": {plain(func(e api.Admitted, run func() error) error {
			e.Exit()
			return run()
		}), []string{"refused by isolation", "a stream is one call until its end"}},
		"a refusal is a bare error": {func(ctx context.Context, g *rpc.Guard, name string, _ rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
			return g.API.Do(ctx, name, run, opts...)
		}, []string{"refused by flow", "a call that waits until its deadline", "a stream is refused", "a nested refusal is reported, and is not a failure"}},
		"calls of the handler are counted elsewhere": {func(ctx context.Context, g *rpc.Guard, name string, o rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
			return ours(ctx, g, name, o, func(context.Context) error { return run(ctx) }, opts...)
		}, []string{"nested calls are counted below the call", "nested calls of a stream are counted below it",
			"a nested refusal that the handler reports as Unavailable is not a failure"}},
		"nobody is the origin": {func(ctx context.Context, g *rpc.Guard, name string, o rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
			return ours(ctx, g, name, rpctest.Options{}, run, opts...)
		}, []string{"refused by authority", "refused by a hotspot rule"}},
		"it waits on nobody's behalf": {func(ctx context.Context, g *rpc.Guard, name string, o rpctest.Options, run func(context.Context) error, opts ...api.Option) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return ours(ctx, g, name, o, run, opts...)
		}, []string{"a client that disconnects while it waits takes nothing"}},
	} {
		t.Run(mistake, func(t *testing.T) {
			for _, name := range broken.cases {
				found := false
				for _, c := range rpctest.Cases() {
					if c.Name != name {
						continue
					}
					// A correct adapter needs less time in every case, except on a machine that
					// stalls; then this test passes.
					found, c.Patience = true, 200*time.Millisecond
					if err := c.Check(t, direct(broken.at)); err == nil {
						t.Errorf("nobody notices in the case %q", name)
					}
				}
				if !found {
					t.Errorf("there is no case %q", name)
				}
			}
		})
	}
}
