// Fairshare shows an unfair and a fair queue side by side: a heavy tenant has ten calls waiting for
// a pool of two workers when a light one comes.
//
//	go run ./examples/fairshare
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
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
	rule := isolation.Rule{Resource: "POST /chat", Threshold: 2, MaxQueue: 20, MaxWait: time.Minute}
	unfair, err := served(rule)
	if err != nil {
		return err
	}
	rule.Share = api.Share{By: "param tenant"}
	fair, err := served(rule)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "first come, first served:", strings.Join(unfair, " "))
	fmt.Fprintln(w, "fair shares:             ", strings.Join(fair, " "))
	return nil
}

// served returns the tenants of the calls, in the order in which they run under the rule. Each call
// takes a second.
func served(rule isolation.Rule) (order []string, err error) {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // a waiting call is parked
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if err := guard.LoadRules(api.RuleSet{Isolation: []isolation.Rule{rule}}); err != nil {
		return nil, err
	}
	type call struct {
		tenant string
		entry  api.Admitted
		err    error
	}
	admitted := make(chan call)
	start := func(tenant string) {
		entry, err := guard.Entry(context.Background(), "POST /chat", api.Param("tenant", tenant))
		admitted <- call{tenant, entry, err}
	}
	tenants := strings.Fields("heavy heavy heavy heavy heavy heavy heavy heavy heavy heavy light light")
	var running []call
	for i, tenant := range tenants {
		parked := clock.Parked()
		go start(tenant)
		if i < rule.Threshold {
			running = append(running, <-admitted)
		} else {
			clock.AwaitParked(parked + 1)
		}
	}
	for len(running) > 0 {
		c := running[0]
		if c.err != nil {
			return nil, c.err
		}
		if order = append(order, c.tenant); len(order)%rule.Threshold == 1 {
			clock.Advance(time.Second)
		}
		c.entry.Exit() // its permit goes to the next call
		if running = running[1:]; len(order)+len(running) < len(tenants) {
			running = append(running, <-admitted)
		}
	}
	return order, nil
}
