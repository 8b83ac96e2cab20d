// Quickstart shows Penstock at work in one command:
//
//	go run ./examples/quickstart
//
// It starts an HTTP server on a loopback port, guarded by rules.yaml, sends it more requests than
// the rules allow for ten seconds, and shows the outcome: a line per second, a summary with every
// limit, and the tree of calls.
//
//	go run ./examples/quickstart -serve
//
// runs until Ctrl-C, so that you can send your own requests and edit the rules. It prints the address
// of the dashboard.
//
// The exit code is 0, even after Ctrl-C, or 1 if something failed or a limit did not hold. The
// files, in reading order: rules.yaml, server.go (how to guard a service), main.go, load.go,
// table.go, report.go, rulefile.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/api"
	dashboard "github.com/penstock-go/penstock/observe/console"
)

func main() {
	serve := flag.Bool("serve", false, "run until Ctrl-C, so that you can use curl and edit rules.yaml")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately

	s := settings{out: os.Stdout, terminal: isTerminal(os.Stdout), seconds: 10}
	if *serve {
		s.seconds = 0
	}
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// settings are the parameters that tests change.
type settings struct {
	out      io.Writer
	terminal bool   // out can show a progress line
	rules    string // the rule file; "" means the embedded one
	seconds  int    // duration of the load; 0 means until the context ends
}

// run starts everything, waits for the end, and cleans up.
func run(ctx context.Context, s settings) (err error) {
	out := &console{w: s.out, terminal: s.terminal}
	file, remove, err := findRules(s.rules)
	if err != nil {
		return err
	}
	defer remove()

	guard, err := api.New(api.Config{
		// The engine logs refusals, at most one line per second and rule. Here the table shows them,
		// and log lines would garble it.
		Logger:      slog.New(slog.DiscardHandler),
		Percentiles: s.seconds == 0, // for the dashboard
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	// WatchRules loads the rules now, and again whenever the file changes.
	var loads atomic.Int64
	guard.OnReload(func(r api.Reload) {
		if r.Err != nil || loads.Add(1) > 1 {
			out.reloaded(r)
		}
	})
	if err := guard.WatchRules(ctx, file); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C
		}
		return err
	}

	// The server listens on loopback only: every client can read /tree, /nodes and /rules.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shop := &shop{guard: guard}
	server := &http.Server{Handler: shop.routes(), ReadHeaderTimeout: 2 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { err = errors.Join(err, shutDown(server, served)) }()

	url := "http://" + listener.Addr().String()
	page := ""
	if s.seconds == 0 {
		var stop func() error
		if page, stop, err = serveDashboard(ctx, guard); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	out.intro(url, page, file, guard.Rules().Len(), s.seconds)

	load := startLoad(ctx, url, s.seconds)
	defer load.stop()
	result := out.watch(ctx, load, shop)
	result.rules = guard.Rules()
	result.edited = loads.Load() > 1
	return out.report(result)
}

// serveDashboard serves the dashboard of the guard, at its default address if that is free. stop
// ends it.
func serveDashboard(ctx context.Context, guard *api.Guard) (url string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	for _, addr := range []string{dashboard.DefaultAddr, "127.0.0.1:0"} {
		urls, served := make(chan string, 1), make(chan error, 1)
		cfg := dashboard.Config{Addr: addr, Listening: func(url string) { urls <- url }}
		go func() { served <- dashboard.ListenAndServe(ctx, guard, cfg) }()
		select {
		case url = <-urls:
			return url, func() error { cancel(); return <-served }, nil
		case err = <-served:
		}
	}
	cancel()
	return "", nil, err
}

// shutDown shuts the server down, with some time for the calls in flight.
func shutDown(server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
