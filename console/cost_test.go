package console

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

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// BenchmarkCallWhileWatched is what a call costs in the median while nobody looks, and while a
// hundred streams are open and somebody asks for everything each second. Both are measured in
// turns, many times, so that what else the machine does meets both.
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
	watch := func() (stop func()) {
		ctx, cancel := context.WithCancel(b.Context())
		urls, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- ListenAndServe(ctx, guard, Config{Addr: "127.0.0.1:0", Listening: func(url string) { urls <- url }})
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
			clients.Go(func() { get(eventsPath) })
		}
		clients.Go(func() {
			for ctx.Err() == nil {
				for _, path := range []string{"/", "/api/tree", "/api/resources", "/api/rules", "/api/resource?name=orders"} {
					get(path)
				}
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
	var alone, watched []float64
	batch := func() float64 {
		const calls = 1_000
		begin := time.Now()
		for range calls {
			e, _ := guard.Entry(context.Background(), "orders")
			e.Exit()
		}
		return float64(time.Since(begin)) / calls
	}
	const turn = 2500 * time.Millisecond
	for b.Loop() {
		for begin := time.Now(); time.Since(begin) < turn; {
			alone = append(alone, batch())
		}
		stop := watch()
		for begin := time.Now(); time.Since(begin) < turn; {
			watched = append(watched, batch())
		}
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
