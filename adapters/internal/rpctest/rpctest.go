// Package rpctest tests adapters of RPC frameworks: it runs one table of cases against a real
// server of the framework on the loopback interface, with a real client.
//
//	rpctest.Run(t, rpctest.Framework{Start: start, Error: toError, Reported: reported})
//
// After each case no call is in flight or waiting.
package rpctest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/internal/meet"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
)

// Code is the number of a gRPC status.
type Code = refusal.Code

// The codes that cases name.
const (
	OK                     = refusal.OK
	Canceled               = refusal.Canceled
	Unknown           Code = 2
	DeadlineExceeded       = refusal.DeadlineExceeded
	NotFound          Code = 5
	PermissionDenied       = refusal.PermissionDenied
	ResourceExhausted      = refusal.ResourceExhausted
	Internal               = refusal.Internal
	Unavailable            = refusal.Unavailable
	DataLoss          Code = 15
)

// Framework is a framework with the adapter under test.
type Framework struct {
	// Start serves s, guarded as a user would do it, and returns a client that is guarded likewise,
	// or an unguarded one if the adapter has none for clients. Both must be gone when the test has
	// ended.
	Start func(t testing.TB, s *Service, server, client Options) Client
	// Unary and Stream are the resources of the two methods.
	Unary, Stream string
	// Error returns an error with that code, as handlers return it.
	Error func(code Code, text string) error
	// Reported returns what a client reads from an error.
	Reported func(err error) Report
	// NoClients says why the adapter has none for clients; then they count nothing.
	NoClients string
	// Without maps the names of cases that the framework can't run to the reason.
	Without map[string]string
}

// Service is the test service: two methods.
type Service struct {
	// Unary is a method with one request and one response.
	Unary func(ctx context.Context) error
	// Stream is a method with a stream of responses.
	Stream func(ctx context.Context, send func() error) error
	// Around must be called with the context of each call before the guard.
	Around func(context.Context) context.Context
	// Recovered must be called when a panic has passed the guard.
	Recovered func()
}

// Client calls the service.
type Client struct {
	Unary func(ctx context.Context) error
	// Stream opens the stream: recv returns io.EOF at its end, leave closes it before that. Nil if
	// there are no streams.
	Stream func(ctx context.Context) (s Stream, err error)
}

// Stream is the client's side of a stream.
type Stream struct {
	Recv  func() error // io.EOF at the end
	Leave func()       // before the end; nil means that the framework has no such call
}

// Options are an adapter's options for a server or a client.
type Options struct {
	Guard   *api.Guard
	Context string
	// Origin is the caller of each call, and User its argument "user"; "" means none.
	Origin, User string
	// Cost is the number of tokens that each call costs, and gives back if it fails. 0 means neither.
	Cost int64
	// Levels makes a server read the level of calls, at most AtMost.
	Levels       bool
	AtMost       api.Level
	Resource     func(method string) string    // nil means the default
	FailureCodes []Code                        // nil means the default
	Failure      func(err error) (failed bool) // nil means the default
}

// Report holds what a client reads from an error.
type Report struct {
	Code           Code
	Reason, Domain string // of ErrorInfo
	RetryDelay     time.Duration
	Text           string // everything that was sent
}

// Case is one requirement for the adapter.
type Case struct {
	Name           string
	Server, Client api.RuleSet
	ServerOpts     Options
	ClientOpts     Options
	// Unary and Stream are the handlers; nil means no work, and three responses.
	Unary  func(*Stage, context.Context) error
	Stream func(s *Stage, ctx context.Context, send func() error) error
	Run    func(*Stage) error
	// OfStream means that the case needs streams.
	OfStream bool
	// Late makes the server give calls a deadline, which expires when the case closes late.
	Late bool
	// Patience limits the wait for an event that must come; 0 means the limit of go test.
	Patience time.Duration
}

// Run runs all cases.
func Run(t *testing.T, f Framework) {
	known := make(map[string]bool)
	for _, c := range Cases() {
		known[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			if why := f.Without[c.Name]; why != "" {
				t.Skip(why)
			}
			if err := c.Check(t, f); err != nil {
				t.Error(err)
			}
		})
	}
	for name := range f.Without {
		if !known[name] {
			t.Errorf("there is no case %q", name)
		}
	}
}

// Stage is the setting of a case: a server on the loopback interface, and a client.
type Stage struct {
	Framework
	client         Client
	of             [2]*api.Guard   // guards of the server and of the client
	ctx            context.Context // ends when the case takes too long
	meet           *meet.Point     // of the case and held handlers
	late           chan struct{}   // closed when the deadline of waiting calls has come
	comes, panicks atomic.Int64    // calls that reached the server, and panics that passed the guard
}

const (
	server = 0
	client = 1
)

// Check runs the case and returns an error that names what the adapter does wrong.
func (c *Case) Check(t testing.TB, f Framework) error {
	s := &Stage{Framework: f, late: make(chan struct{}), meet: meet.New(cmp.Or(c.Patience, meet.Patience))}
	defer close(s.meet.Over)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(s.meet.Patience, cancel).Stop()
	s.ctx = ctx
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	for i, set := range []api.RuleSet{c.Server, c.Client} {
		g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer g.Close()
		if err := g.LoadRules(set); err != nil {
			return err
		}
		s.of[i] = g
	}
	serverOpts, clientOpts := c.ServerOpts, c.ClientOpts
	serverOpts.Guard, clientOpts.Guard = s.of[server], s.of[client]
	s.client = f.Start(t, &Service{
		Unary: func(ctx context.Context) error {
			if c.Unary == nil {
				return nil
			}
			return c.Unary(s, ctx)
		},
		Stream: func(ctx context.Context, send func() error) error {
			if c.Stream != nil {
				return c.Stream(s, ctx, send)
			}
			return errors.Join(send(), send(), send())
		},
		Around: func(ctx context.Context) context.Context {
			s.comes.Add(1)
			if !c.Late {
				return ctx
			}
			return &deadline{ctx, s.late}
		},
		Recovered: func() { s.panicks.Add(1) },
	}, serverOpts, clientOpts)
	if err := c.Run(s); err != nil {
		return err
	}
	return s.until("nothing is in flight", func() bool {
		for _, g := range s.of {
			tree := g.Tree()
			if tree.Waiting != 0 {
				return false
			}
			for _, n := range tree.Resources {
				if n.InFlight != 0 {
					return false
				}
			}
		}
		return true
	})
}

// deadline is a context whose deadline expires when late is closed.
type deadline struct {
	context.Context
	late chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.late }

func (d *deadline) Err() error {
	select {
	case <-d.late:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// hold reports that a handler runs, and waits until it is released or its caller no longer waits.
func hold(s *Stage, ctx context.Context) error {
	select {
	case s.meet.Held <- struct{}{}:
	case <-s.meet.Over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.meet.Release:
		return nil
	case <-s.meet.Over:
		return nil
	case <-ctx.Done():
		return s.Error(Internal, "as handlers say that fail for it")
	}
}

func (s *Stage) call() error { return s.client.Unary(s.ctx) }

// drain opens the stream and reads it to its end.
func (s *Stage) drain() error {
	stream, err := s.client.Stream(s.ctx)
	if err != nil {
		return err
	}
	return stream.toEnd()
}

func (s Stream) toEnd() error {
	for {
		if err := s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// waiting makes a call, ends it as soon as it waits for a rule, and returns its error.
func (s *Stage) waiting(at int, call func() error, end func()) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	err := s.until("the call waits", func() bool { return s.of[at].Tree().Waiting == 1 })
	end()
	if result := <-done; err == nil {
		err = result
	}
	return err
}

// until waits for a condition that other goroutines bring about.
func (s *Stage) until(what string, ok func() bool) error {
	if !meet.Until(s.meet.Patience, ok) {
		return fmt.Errorf("condition not met: %s\nserver:\n%s\nclient:\n%s", what, text(s.of[server]), text(s.of[client]))
	}
	return nil
}

func text(g *api.Guard) string {
	var to strings.Builder
	_ = g.Tree().WriteText(&to)
	return to.String()
}

// figures are a resource's counts.
type figures struct{ pass, block, done, failed, long, inFlight int64 }

func (s *Stage) figures(at int, resource string) (f figures) {
	if n, ok := s.of[at].Tree().Resource(resource); ok {
		c := n.Lifetime
		f = figures{c.Pass, c.Block, c.Complete, c.Exception, c.LongLived, n.InFlight}
	}
	return f
}

// counted waits until a resource has the counts of want. If the adapter has nothing for clients,
// they count nothing.
func (s *Stage) counted(at int, resource string, want figures) error {
	if at == client && s.NoClients != "" {
		want = figures{}
	}
	err := s.until(fmt.Sprintf("%q has counted %+v", resource, want), func() bool { return s.figures(at, resource) == want })
	if err != nil {
		return fmt.Errorf("%+v: %w", s.figures(at, resource), err)
	}
	return nil
}

// leftOut checks for one call with an unknown outcome, which the breaker has left out.
func (s *Stage) leftOut(at int, resource string, want figures) error {
	if err := s.counted(at, resource, want); err != nil {
		return err
	}
	return s.judged(at, resource, 0, 1)
}

// judged waits until a resource's breaker, if it has one, has counted that many calls and left out
// that many: nodes count a call earlier.
func (s *Stage) judged(at int, resource string, calls, neutral int64) error {
	return s.until(fmt.Sprintf("the breaker of %q has counted %d calls and left out %d", resource, calls, neutral), func() bool {
		for _, b := range s.of[at].Breakers() {
			if b.Resource == resource && (b.Calls != calls || b.Neutral != neutral) {
				return false
			}
		}
		return true
	})
}

// is checks the code of an error.
func (s *Stage) is(err error, want Code) error {
	got := OK
	if err != nil {
		got = s.Reported(err).Code
	}
	if got != want {
		return fmt.Errorf("the code is %d, not %d: %w", got, want, err)
	}
	return nil
}

// refused checks a refusal's error.
func (s *Stage) refused(err error, code Code, reason string, retry bool) error {
	if err := s.is(err, code); err != nil {
		return err
	}
	got := s.Reported(err)
	if got.Reason != reason || got.Domain != "penstock" || got.RetryDelay > 0 != retry {
		return fmt.Errorf("reported as %+v", got)
	}
	if strings.Contains(got.Text, "secret") {
		return fmt.Errorf("the rule is named: %s", got.Text)
	}
	return nil
}
