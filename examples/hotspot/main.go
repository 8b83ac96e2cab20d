// Hotspot shows limits for single values: one for each user, more for some and nothing for others,
// and a limit on concurrent reports.
//
//	go run ./examples/hotspot
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{
		{
			ID: "users", Resource: "GET /orders", Param: "user",
			Threshold: 3, // per second
			Exceptions: []hotspot.Exception{
				{Value: hotspot.ValueOf("batch"), Threshold: 8},
				{Value: hotspot.ValueOf("banned"), Threshold: 0},
			},
		},
		{ID: "reports", Resource: "GET /report", Index: hotspot.At(0), Threshold: 1, Metric: hotspot.Concurrency},
	}})
	if err != nil {
		return err
	}
	ctx := context.Background()

	fmt.Fprintln(w, "ten calls of each user in one second:")
	for _, user := range []string{"ann", "bob", "batch", "banned"} {
		passed := 0
		for range 10 {
			e, err := guard.Entry(ctx, "GET /orders", api.Param("user", user))
			if err == nil {
				passed++
			}
			e.Exit()
		}
		fmt.Fprintf(w, "  %-6s %d pass\n", user, passed)
	}

	fmt.Fprintln(w, "a call about several users takes of each, or of none:")
	clock.Advance(1100 * time.Millisecond)
	for _, users := range [][]string{{"ann", "bob"}, {"ann", "banned"}} {
		e, err := guard.Entry(ctx, "GET /orders", api.Param("user", users))
		e.Exit()
		fmt.Fprintf(w, "  %v: %s\n", users, verdict(err))
	}

	fmt.Fprintln(w, "one report of a kind at once:")
	yearly, err := guard.Entry(ctx, "GET /report", api.Args("yearly", 2025))
	fmt.Fprintf(w, "  yearly:       %s\n", verdict(err))
	_, err = guard.Entry(ctx, "GET /report", api.Args("yearly", 2024))
	fmt.Fprintf(w, "  yearly again: %s\n", verdict(err))
	daily, err := guard.Entry(ctx, "GET /report", api.Args("daily"))
	fmt.Fprintf(w, "  daily:        %s\n", verdict(err))
	yearly.Exit()
	daily.Exit()

	fmt.Fprintln(w, "the hottest users:")
	for _, v := range guard.Tree().Rules[0].Details.(hotspot.Stats).Top {
		fmt.Fprintf(w, "  %-8s passed %d, refused %d\n", v.Value, v.Passed, v.Refused)
	}
	return nil
}

func verdict(err error) string {
	if err != nil {
		return err.Error()
	}
	return "passes"
}
