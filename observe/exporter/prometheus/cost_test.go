package penstockprometheus_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/observe/console"
	penstockprometheus "github.com/penstock-go/penstock/observe/exporter/prometheus"
)

// BenchmarkCallWhileWatched measures the median cost of a call without clients, and with a hundred
// open streams of the dashboard, one request a second for its page and each API path, and one
// scrape a second. The two cases alternate many times, so that other load on the machine affects both.
func BenchmarkCallWhileWatched(b *testing.B) {
	guard, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer guard.Close()
	require.NoError(b, guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 1e9}}}))
	for i := range 100 {
		e, err := guard.Entry(b.Context(), fmt.Sprint("resource ", i))
		require.NoError(b, err)
		e.Exit()
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(penstockprometheus.NewCollector(guard, penstockprometheus.Config{}))
	watch := func() (stop func()) {
		ctx, cancel := context.WithCancel(b.Context())
		urls, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- console.ListenAndServe(ctx, guard, console.Config{Addr: "127.0.0.1:0", Listening: func(url string) { urls <- url }})
		}()
		url := <-urls
		var clients sync.WaitGroup
		get := func(path string) {
			r, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
			if err != nil {
				return
			}
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		for range 100 {
			clients.Go(func() { get("/api/events") })
		}
		clients.Go(func() {
			for ctx.Err() == nil {
				for _, path := range []string{"/", "/api/tree", "/api/resources", "/api/rules", "/api/resource?name=orders"} {
					get(path)
				}
				_, _ = registry.Gather()
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
		return func() {
			cancel()
			clients.Wait()
			http.DefaultClient.CloseIdleConnections()
			require.NoError(b, <-ended)
		}
	}
	const calls, turn = 1_000, 2500 * time.Millisecond
	measure := func(to []float64) []float64 {
		for begin := time.Now(); time.Since(begin) < turn; {
			began := time.Now()
			for range calls {
				e, _ := guard.Entry(context.Background(), "orders")
				e.Exit()
			}
			to = append(to, float64(time.Since(began))/calls)
		}
		return to
	}
	var alone, watched []float64
	for b.Loop() {
		alone = measure(alone)
		stop := watch()
		watched = measure(watched)
		stop()
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	b.ReportMetric(median(alone), "alone-ns/call")
	b.ReportMetric(median(watched), "watched-ns/call")
	b.ReportMetric(100*(median(watched)/median(alone)-1), "%more")
}
