package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// The limits for clients.
const (
	maxConnections = 32
	maxHeader      = 8 << 10
	headerTimeout  = 2 * time.Second
	requestTimeout = 10 * time.Second
	unreadTimeout  = time.Second // to send a form that is not read, since the request is refused
	idleTimeout    = 30 * time.Second
	lastWords      = time.Second // for requests in flight when ctx ends
)

// ListenAndServe serves the command API of a Guard, and reports the program to dashboards, until
// ctx ends; then it returns nil. It returns an error if the Config is invalid, no port is free, or
// serving fails. It logs to the Guard's log the address it listens at, and each change of rules
// with the client's address.
func ListenAndServe(ctx context.Context, guard *api.Guard, cfg Config) error {
	c, err := cfg.check()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c.at)
	if err != nil {
		return fmt.Errorf("penstock: the command API can't listen: %w", err)
	}
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	logger := guard.Logger()
	server := &http.Server{
		Handler:           newHandler(guard, &c),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(quiet{}, "", 0), // there may be many errors of clients that disconnect
	}
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() {
		<-ctx.Done()
		last, done := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer done()
		if server.Shutdown(last) != nil {
			_ = server.Close() // doesn't wait for slow clients
		}
	})
	for _, d := range c.dashboards {
		h := newHeart(&c, d, at, logger)
		running.Go(func() { h.beat(ctx) })
	}
	logger.Info("penstock: Sentinel's command API is listening", "address", at.String(), "ruleWrites", c.AllowRuleWrites)
	if c.Listening != nil {
		c.Listening(at)
	}
	if err := server.Serve(newBounded(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("penstock: the command API: %w", err)
	}
	return nil
}

// quiet discards a log.
type quiet struct{}

func (quiet) Write(p []byte) (int, error) { return len(p), nil }

const (
	maxPorts     = 20
	triesPerPort = 3
	betweenTries = 30 * time.Millisecond
)

// listen listens at an address or, if its port is taken, at one of the next ports.
func listen(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	for try := 0; ; try++ {
		port := int(at.Port()) + try/triesPerPort
		l, err := listenAt(ctx, at.Addr(), port)
		if err == nil || at.Port() == 0 {
			return l, err
		}
		if try == 0 {
			free, none := listenAt(ctx, at.Addr(), 0)
			if none != nil {
				return nil, err // another port wouldn't help
			}
			_ = free.Close()
		}
		if last := try%triesPerPort == triesPerPort-1; last && (try/triesPerPort == maxPorts-1 || port == math.MaxUint16) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(betweenTries):
		}
	}
}

func listenAt(ctx context.Context, ip netip.Addr, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(ip, uint16(port)).String())
}

// bounded is a listener with a maximum number of connections. Further connections wait to be accepted.
type bounded struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	close  func() error
}

func newBounded(l net.Listener, most int) *bounded {
	b := &bounded{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{})}
	b.close = sync.OnceValue(func() error {
		close(b.closed)
		return l.Close()
	})
	return b
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &limited{c, sync.OnceFunc(func() { <-b.free })}, nil
}

func (b *bounded) Close() error { return b.close() }

// limited is a connection that counts towards the limit of a bounded listener.
type limited struct {
	net.Conn
	gone func()
}

func (c *limited) Close() error {
	defer c.gone()
	return c.Conn.Close()
}
