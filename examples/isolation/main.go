// Isolation shows a limit on calls in flight, with a queue for further calls: for work that allows
// only limited concurrency.
//
//	go run ./examples/isolation
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/isolation"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // a waiting call is parked
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Isolation: []isolation.Rule{{
		Resource:  "render pdf",
		Threshold: 2, // concurrent calls
		MaxQueue:  3,
		MaxWait:   10 * time.Second,
	}}})
	if err != nil {
		return err
	}
	d := &desk{w: w, guard: guard, clock: clock, start: clock.Now()}
	ctx := context.Background()

	first, second := d.enter(ctx, "first"), d.enter(ctx, "second")
	impatient, cancel := context.WithCancel(ctx)
	defer cancel()
	patient := d.queued(ctx, "patient")
	quitter := d.queued(impatient, "quitter")
	urgent := d.queued(ctx, "urgent", api.Prioritized())
	d.enter(ctx, "sixth")

	clock.Advance(4 * time.Second)
	cancel()
	<-quitter
	fmt.Fprintln(w, "first ends, and its permit goes to the first in the queue")
	first.Exit()
	pdf := <-urgent
	fmt.Fprintln(w, "urgent ends")
	pdf.Exit()
	pdf = <-patient
	late := d.queued(ctx, "late")
	clock.Advance(10 * time.Second)
	<-late
	second.Exit()
	pdf.Exit()
	return nil
}

// desk reports the outcome of calls.
type desk struct {
	mu    sync.Mutex
	w     io.Writer
	guard *api.Guard
	clock *api.ManualClock
	start int64
}

func (d *desk) enter(ctx context.Context, name string, opts ...api.Option) api.Admitted {
	e, err := d.guard.Entry(ctx, "render pdf", opts...)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Duration(d.clock.Now() - d.start)
	switch {
	case err == nil:
		fmt.Fprintf(d.w, "%v: %s runs\n", now, name)
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(d.w, "%v: %s gave up\n", now, name)
	default:
		fmt.Fprintf(d.w, "%v: %s is refused: %v\n", now, name, err)
	}
	return e
}

// queued makes a call that has to wait.
func (d *desk) queued(ctx context.Context, name string, opts ...api.Option) <-chan api.Admitted {
	entry := make(chan api.Admitted, 1)
	before := d.clock.Parked()
	go func() { entry <- d.enter(ctx, name, opts...) }()
	d.clock.AwaitParked(before + 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.w, "%v: %s waits in the queue\n", time.Duration(d.clock.Now()-d.start), name)
	return entry
}
