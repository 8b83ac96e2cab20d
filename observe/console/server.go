package console

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// The limits on the time and number of clients. Streams have their own limits: Config.Streams, and a
// deadline for each frame.
const (
	headerTime  = 2 * time.Second
	requestTime = 10 * time.Second // to send a request, or to read the response
	idleTime    = 30 * time.Second
	headerSize  = 8 << 10
	bodySize    = 1 << 20
	unreadTime  = time.Second // to send a body that is not read, since the request is refused
	maxRequests = 32          // being served
	maxBodies   = 8           // being read, before that
	spareConns  = 64          // in addition to those of streams
	endTime     = time.Second
)

// ListenAndServe serves the dashboard and API of a Guard until ctx ends; then it stops everything and
// returns nil. It returns an error immediately if the configuration is invalid or it can't listen at
// the address.
//
// While it serves, the engine keeps the latest refusals of each resource (see
// [api.Guard.KeepRefusals]).
func ListenAndServe(ctx context.Context, guard *api.Guard, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return err
	}
	return serve(ctx, guard, cfg, listener)
}

// serve is like ListenAndServe, but uses an open listener, which it closes.
func serve(ctx context.Context, guard *api.Guard, cfg Config, listener net.Listener) error {
	url := "http://"
	if cfg.TLS != nil {
		url = "https://"
	}
	url += listener.Addr().String()
	places := newBounded(listener, cfg.Streams+spareConns)
	listener = places
	if cfg.TLS != nil {
		secure := cfg.TLS.Clone()
		secure.NextProtos = []string{"http/1.1"} // each stream has its own connection and deadline
		listener = tls.NewListener(listener, secure)
	}
	c := newConsole(guard, cfg)
	defer c.close()
	server := &http.Server{
		Handler:           c.handler(),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      requestTime,
		IdleTimeout:       idleTime,
		ConnState:         places.note,
		MaxHeaderBytes:    headerSize,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(guard.Logger().Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if cfg.Listening != nil {
		cfg.Listening(url)
	}
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = server.Close() // requests still running have had their time
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	c.requests.Wait()
	return err
}

// bounded is a listener with a maximum number of connections. A further connection replaces the one
// that has been idle longest. If none is idle, it waits until one ends or becomes idle; deadlines
// limit the time of slow connections.
type bounded struct {
	net.Listener
	room chan struct{}

	mu      sync.Mutex     // guards the fields below it
	idle    []*boundedConn // the one that is idle longest first
	waiting bool           // a connection waits to be accepted
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, most)}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.room <- struct{}{}:
	default:
		b.makeRoom()
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &boundedConn{Conn: conn, room: b.room}, nil
}

// makeRoom waits until a connection may be accepted.
func (b *bounded) makeRoom() {
	var longest *boundedConn
	b.mu.Lock()
	if b.waiting = len(b.idle) == 0; !b.waiting {
		longest, b.idle = b.idle[0], b.idle[1:]
	}
	b.mu.Unlock()
	if longest != nil {
		_ = longest.Close() // its owner notices on the next read
	}
	b.room <- struct{}{}
	b.mu.Lock()
	b.waiting = false
	b.mu.Unlock()
}

// note is the server's ConnState hook.
func (b *bounded) note(c net.Conn, state http.ConnState) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	conn, ok := c.(*boundedConn)
	if !ok {
		return
	}
	b.mu.Lock()
	b.idle = slices.DeleteFunc(b.idle, func(other *boundedConn) bool { return other == conn })
	end := state == http.StateIdle && b.waiting
	switch {
	case end:
		b.waiting = false
	case state == http.StateIdle:
		b.idle = append(b.idle, conn)
	}
	b.mu.Unlock()
	if end {
		_ = conn.Close() // as above
	}
}

type boundedConn struct {
	net.Conn
	end  sync.Once
	room chan struct{}
}

func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.end.Do(func() { <-c.room })
	return err
}
