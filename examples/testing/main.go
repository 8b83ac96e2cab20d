// Testing shows how to test a rule file: load it into a guard with a manual clock, replay a script
// of calls, and compare the verdicts. Hours pass in microseconds, and the result is the same on
// every run.
//
//	go run ./examples/testing
//	go test ./examples/testing
//
// The program prints the verdicts for the script below; main_test.go checks them. For your own
// rules, copy the test, bench and the script.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
)

//go:embed rules.yaml
var ruleFile []byte

// bench is a guard for testing rules.
type bench struct {
	guard *api.Guard
	clock *api.ManualClock
	start int64
}

func newBench(file []byte) (*bench, error) {
	set, err := api.ParseRules("rules.yaml", file)
	if err != nil {
		return nil, err // file, line, column, and the mistake
	}
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepRecord) // the wait of a call is recorded, and the call continues
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &bench{guard, clock, clock.Now()}, guard.LoadRules(set)
}

// call makes a call at a time after the start, and returns its outcome.
func (b *bench) call(at time.Duration, resource string) string {
	b.clock.AdvanceTo(b.start + int64(at))
	before := len(b.clock.Slept())
	e, err := b.guard.Entry(context.Background(), resource)
	if err != nil {
		return "block"
	}
	defer e.Exit()
	if slept := b.clock.Slept()[before:]; len(slept) > 0 {
		return "wait " + slept[0].String()
	}
	return "pass"
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	b, err := newBench(ruleFile)
	if err != nil {
		return err
	}
	defer b.guard.Close()
	for _, s := range script {
		fmt.Fprintf(w, "%-9v %-15s %s\n", s.at, s.resource, b.call(s.at, s.resource))
	}
	return nil
}

// script lists calls with their expected outcomes, in order of time.
var script = []struct {
	at       time.Duration
	resource string
	want     string
}{
	{0, "POST /checkout", "pass"},
	{0, "POST /checkout", "pass"},
	{400 * time.Millisecond, "POST /checkout", "pass"},
	{999 * time.Millisecond, "POST /checkout", "block"},
	{time.Second, "POST /checkout", "block"},
	{1020 * time.Millisecond, "POST /checkout", "pass"}, // the window slides by fiftieths of a second

	{2 * time.Second, "POST /refund", "pass"},
	{2 * time.Second, "POST /refund", "wait 500ms"},
	{2 * time.Second, "POST /refund", "block"},

	{time.Hour, "GET /export", "pass"},
	{2*time.Hour - time.Second, "GET /export", "block"},
	{2*time.Hour + 72*time.Second, "GET /export", "pass"}, // or of an hour

	{3 * time.Hour, "GET /no/rule", "pass"},
}
