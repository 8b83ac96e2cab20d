package main

import (
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/api"
)

// ruled returns an engine with these rules, on a clock that stands at a whole minute.
func ruled(set api.RuleSet) (*api.Guard, *api.ManualClock, error) {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	if err := g.LoadRules(set); err != nil {
		return nil, nil, err
	}
	return g, clock, nil
}
