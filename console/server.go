package console

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// What a client may take its time for, and what there may be at once. Streams have limits of their
// own: Config.Streams, and a deadline for each frame.
const (
	headerTime  = 2 * time.Second
	requestTime = 10 * time.Second // to send a request, or to take the answer
	idleTime    = 30 * time.Second
	headerSize  = 8 << 10
	bodySize    = 1 << 20
	maxRequests = 32 // that are being answered
	spareConns  = 64 // beside those of streams
	endTime     = time.Second
)

// ListenAndServe serves the dashboard and its API of a Guard until ctx ends; then it returns nil,
// when nothing of it runs any more. It returns an error at once if the configuration can't be
// honoured or the address can't be listened on.
//
// While it serves, the engine keeps the last refusals of each resource (see
// [core.Engine.KeepRefusals]).
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

// serve is ListenAndServe on a listener, which it closes.
func serve(ctx context.Context, guard *api.Guard, cfg Config, listener net.Listener) error {
	url := "http://"
	if cfg.TLS != nil {
		url = "https://"
	}
	url += listener.Addr().String()
	listener = &bounded{Listener: listener, room: make(chan struct{}, cfg.Streams+spareConns)}
	if cfg.TLS != nil {
		secure := cfg.TLS.Clone()
		secure.NextProtos = []string{"http/1.1"} // so that a stream is a connection, which can have a deadline
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
		MaxHeaderBytes:    headerSize,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(guard.Engine().Logger().Handler(), slog.LevelDebug),
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
		err = server.Close() // who is still at it has had its time
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	c.requests.Wait()
	return err
}

// bounded is a listener with so many connections at most; others wait until one ends, which takes idle
// and slow ones no longer than their deadlines.
type bounded struct {
	net.Listener
	room chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	b.room <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &boundedConn{Conn: conn, room: b.room}, nil
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
