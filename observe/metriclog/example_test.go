package metriclog_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/observe/metriclog"
)

func ExampleStart() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Chain: metriclog.Chain()})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	log, err := metriclog.Start(guard, metriclog.Config{Dir: dir, App: "shop"})
	if err != nil {
		panic(err)
	}
	defer log.Close()

	_ = guard.Do(context.Background(), "GET /orders", func(context.Context) error {
		clock.Advance(20 * time.Millisecond)
		return nil
	})
	clock.Advance(time.Second)

	rows, err := log.Find(metriclog.Query{Resource: "GET /orders"})
	if err != nil {
		panic(err)
	}
	for _, row := range rows {
		fmt.Println(row.At.Format(time.TimeOnly), row.Resource, row.Pass, row.AvgRT)
	}
	// Output:
	// 15:00:00 GET /orders 1 20ms
}
