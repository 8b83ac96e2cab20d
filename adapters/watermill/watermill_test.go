package penstockwatermill_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockwatermill "github.com/penstock-go/penstock/adapters/watermill"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/isolation"
)

func TestMain(m *testing.M) { books.Main(m) }

// stage is a router with one handler, which the test plays.
type stage struct {
	guard *api.Guard
	send  func()
	calls chan *message.Message // messages that reach the handler
	stop  func()
}

func newStage(t *testing.T, set api.RuleSet, handle func(g *api.Guard, m *message.Message) error, opts ...penstockwatermill.Option) *stage {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set))
	log := watermill.NopLogger{}
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true, OutputChannelBuffer: 16}, log)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, log)
	require.NoError(t, err)
	s := &stage{guard: g, calls: make(chan *message.Message, 100)}
	router.AddMiddleware(middleware.Recoverer, penstockwatermill.Middleware(append(opts, penstockwatermill.On(g))...))
	router.AddConsumerHandler("send-mail", "mails", broker, func(m *message.Message) error {
		s.calls <- m
		return handle(g, m)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	<-router.Running()
	sent := 0
	s.send = func() {
		sent++
		require.NoError(t, broker.Publish("mails", message.NewMessage(strconv.Itoa(sent), nil)))
	}
	s.stop = func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, broker.Close())
		assert.Zero(t, s.figures().InFlight)
	}
	return s
}

type figures struct{ Pass, Block, Exception, InFlight int64 }

func (s *stage) figures() figures {
	n, ok := s.guard.Tree().Resource("message send-mail")
	if !ok {
		return figures{}
	}
	return figures{n.Lifetime.Pass, n.Lifetime.Block, n.Lifetime.Exception, n.InFlight}
}

// until waits for an event that must come.
func (s *stage) until(t *testing.T, ok func(figures) bool) {
	require.Eventually(t, func() bool { return ok(s.figures()) }, patience.Of(t), time.Millisecond)
}

// A refused message waits and is then handled, once, and never nacked.
func TestRefusedMessagesWait(t *testing.T) {
	for name, c := range map[string]struct {
		set  api.RuleSet
		opts []penstockwatermill.Option
	}{
		"until the rule's time": {set: api.RuleSet{Flow: []flow.Rule{{Resource: "message send-mail", Threshold: 1, Interval: 20 * time.Millisecond}}}},
		"for a while":           {set: api.RuleSet{Isolation: []isolation.Rule{{Resource: "message send-mail", Threshold: 1}}}, opts: []penstockwatermill.Option{penstockwatermill.Pause(time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.set, func(*api.Guard, *message.Message) error { return nil }, c.opts...)
			held, err := s.guard.Entry(t.Context(), "message send-mail")
			require.NoError(t, err)
			s.send()
			s.until(t, func(f figures) bool { return f.Block > 0 })
			held.Exit()
			assert.Equal(t, "1", (<-s.calls).UUID)
			s.until(t, func(f figures) bool { return f.Pass == 2 && f.InFlight == 0 })
			s.stop()
			assert.Empty(t, s.calls, "it came once")
		})
	}
}

// A waiting message returns when the router is stopped.
func TestStopWhileWaiting(t *testing.T) {
	s := newStage(t, api.RuleSet{Flow: []flow.Rule{{Resource: "message send-mail", Threshold: 1, Interval: time.Hour}}},
		func(*api.Guard, *message.Message) error { return nil })
	s.send()
	<-s.calls
	s.send()
	s.until(t, func(f figures) bool { return f.Block > 0 })
	s.stop()
	assert.Empty(t, s.calls)
}

// A message that a rule makes wait is also kept once the guard drains: brokers would redeliver it
// at once.
func TestDrainKeepsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer g.Close()
		require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "mail", Threshold: 1, Interval: time.Minute,
			Behavior: flow.Throttle, MaxWait: time.Hour}}}))
		handle := penstockwatermill.Middleware(penstockwatermill.On(g), penstockwatermill.Resource(func(*message.Message) string { return "mail" }))(
			func(*message.Message) ([]*message.Message, error) { return nil, nil })
		_, err = handle(message.NewMessage("1", nil))
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		kept := message.NewMessageWithContext(ctx, "2", nil)
		gone := make(chan error, 1)
		go func() {
			_, err := handle(kept)
			gone <- err
		}()
		synctest.Wait()
		require.NoError(t, g.Drain(t.Context()))
		time.Sleep(10500 * time.Millisecond) // on the bubble's clock
		synctest.Wait()
		require.Empty(t, gone, "it waits on")
		n, _ := g.Tree().Resource("mail")
		assert.EqualValues(t, 11, n.Lifetime.Block, "and asks again once a second")
		cancel()
		assert.ErrorIs(t, <-gone, api.ErrDraining)
	})
}

// Breakers count errors as the cases say.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(g *api.Guard, m *message.Message) error
		opts   []penstockwatermill.Option
		failed int64
	}{
		"an error": {handle: func(*api.Guard, *message.Message) error { return errors.New("no disk") }, failed: 1},
		"an error that is none": {handle: func(*api.Guard, *message.Message) error { return errors.New("no disk") },
			opts: []penstockwatermill.Option{penstockwatermill.Failure(func(error) bool { return false })}},
		"a panic": {handle: func(*api.Guard, *message.Message) error { panic("no disk") }, failed: 1},
		"a nested refusal": {handle: func(g *api.Guard, m *message.Message) error {
			_, err := g.Entry(m.Context(), "nested")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var came atomic.Bool
			s := newStage(t, api.RuleSet{Flow: []flow.Rule{{Resource: "nested", Threshold: 0}}}, func(g *api.Guard, m *message.Message) error {
				if came.Swap(true) {
					return nil // it is redelivered
				}
				return c.handle(g, m)
			}, c.opts...)
			s.send()
			<-s.calls
			s.until(t, func(f figures) bool { return f.Pass == 2 && f.InFlight == 0 })
			assert.Equal(t, c.failed, s.figures().Exception)
			s.stop()
		})
	}
}

// A refusal that time does not help is the handler's error, so that the message can go to a poison
// queue.
func TestAuthorityIsFinal(t *testing.T) {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{Authority: []authority.Rule{{Resource: "message mails", List: authority.Deny, Origins: []string{"ann"}}}}))
	h := penstockwatermill.Middleware(penstockwatermill.On(g), penstockwatermill.Origin(func(m *message.Message) string { return m.Metadata["from"] }),
		penstockwatermill.Resource(func(*message.Message) string { return "message mails" }))(
		func(*message.Message) ([]*message.Message, error) { return nil, nil })
	m := message.NewMessage("1", nil)
	_, err = h(m)
	require.NoError(t, err)
	m.Metadata["from"] = "ann"
	_, err = h(m)
	assert.Equal(t, api.KindAuthority, api.KindOf(err))
}

// Breakers leave out a message whose handler failed because the router stopped, and one whose
// handler returns the refusal of a nested call; a panic is a failure even then.
func TestNeutralMessages(t *testing.T) {
	for name, c := range map[string]struct {
		handle              func(g *api.Guard, m *message.Message) error
		opts                []penstockwatermill.Option
		calls, bad, neutral int64
	}{
		"stopped": {handle: func(*api.Guard, *message.Message) error { return errors.New("no disk") }, neutral: 1},
		"stopped, and a failure as the user says": {handle: func(*api.Guard, *message.Message) error { return errors.New("no disk") },
			opts: []penstockwatermill.Option{penstockwatermill.Failure(func(error) bool { return true })}, calls: 1, bad: 1},
		"a panic": {handle: func(*api.Guard, *message.Message) error { panic("no disk") }, calls: 1, bad: 1},
		"a nested refusal": {handle: func(g *api.Guard, _ *message.Message) error {
			_, err := g.Entry(context.Background(), "nested")
			return err
		}, neutral: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := api.New(api.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, g.Close()) })
			require.NoError(t, g.LoadRules(api.RuleSet{
				Flow:    []flow.Rule{{Resource: "nested", Threshold: 0}},
				Breaker: []breaker.Rule{{ID: "b", Resource: "message ", Threshold: 1, MinCalls: 10}},
			}))
			m := message.NewMessage("1", nil)
			ctx, cancel := context.WithCancel(t.Context())
			m.SetContext(ctx)
			handle := penstockwatermill.Middleware(append(c.opts, penstockwatermill.On(g))...)(func(m *message.Message) ([]*message.Message, error) {
				cancel()
				return nil, c.handle(g, m)
			})
			func() {
				defer func() { _ = recover() }()
				_, _ = handle(m)
			}()
			status := g.Breakers()[0]
			assert.Equal(t, [3]int64{c.calls, c.bad, c.neutral}, [3]int64{status.Calls, status.Bad, status.Neutral})
		})
	}
}
