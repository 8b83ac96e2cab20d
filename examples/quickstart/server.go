package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// callers maps API keys to their owners. The origin in rules comes from here, never from a claim of
// the request: a caller that could choose its origin would choose one with room left. (A real service
// stores hashes of its keys.)
var callers = map[string]string{
	"":            "anonymous",
	"demo-acme":   "acme",
	"demo-globex": "globex",
}

// shop is the guarded service.
type shop struct {
	guard *api.Guard
	waits waits
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /hello", s.guarded(s.hello))
	mux.Handle("GET /orders/{id}", s.guarded(s.order))
	mux.Handle("GET /search", s.guarded(s.search))
	mux.Handle("GET /catalog", s.guarded(s.catalog))
	mux.Handle("POST /reports", s.guarded(s.report))

	status := s.guard.Handler() // the guard's counts and rules, read-only
	for _, path := range []string{"/tree", "/nodes", "/rules"} {
		mux.Handle("GET "+path, status)
	}
	return mux
}

// guarded makes a handler a guarded call. The resource is the pattern of the route, not the path of
// the request, since clients can make up any number of paths.
func (s *shop) guarded(handle func(context.Context, http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, ok := callers[r.Header.Get("X-API-Key")]
		if !ok {
			http.Error(w, "unknown API key", http.StatusUnauthorized)
			return
		}
		asked := time.Now()
		ctx := api.WithOrigin(api.WithContext(r.Context(), "http"), caller)
		err := s.guard.Do(ctx, r.Pattern, func(ctx context.Context) error {
			s.waits.add(time.Since(asked)) // a throttle rule may have made it wait
			return handle(ctx, w, r)
		}, api.Inbound())
		if err != nil {
			answerError(w, err)
		}
	})
}

// answerError replies 429 to a request if a rule refused its call or a nested one, with a Retry-After
// if the rule knows it.
func answerError(w http.ResponseWriter, err error) {
	blocked, ok := errors.AsType[*api.BlockError](err)
	if !ok {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	if seconds, known := blocked.RetryAfterIn(time.Second); known {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	http.Error(w, blocked.Error(), http.StatusTooManyRequests)
}

// The handlers. Their context is the context of the guarded call, so calls made with it are nested:
// this gives the tree its branches.

func (s *shop) hello(_ context.Context, w http.ResponseWriter, _ *http.Request) error {
	fmt.Fprintln(w, "hello")
	return nil
}

func (s *shop) order(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	err := s.guard.Do(ctx, "cache orders", func(ctx context.Context) error {
		if hit := rand.N(3) > 0; hit {
			return work(ctx, 200*time.Microsecond)
		}
		return s.query(ctx, "sql orders.select", 2*time.Millisecond)
	})
	if err == nil {
		fmt.Fprintln(w, "order", r.PathValue("id"))
	}
	return err
}

func (s *shop) search(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
	err := s.query(ctx, "sql items.search", 3*time.Millisecond)
	if err == nil {
		fmt.Fprintln(w, "found nothing")
	}
	return err
}

func (s *shop) catalog(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	err := s.query(ctx, "cache catalog", 500*time.Microsecond)
	if err == nil {
		fmt.Fprintln(w, "catalog for", callers[r.Header.Get("X-API-Key")])
	}
	return err
}

func (s *shop) report(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
	err := s.query(ctx, "sql reports.insert", 4*time.Millisecond)
	if err == nil {
		fmt.Fprintln(w, "reported")
	}
	return err
}

// query is a guarded call of something that takes a given time.
func (s *shop) query(ctx context.Context, resource string, takes time.Duration) error {
	return s.guard.Do(ctx, resource, func(ctx context.Context) error { return work(ctx, takes) })
}

func work(ctx context.Context, takes time.Duration) error {
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waits records how long admitted calls waited for their turn.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

// add records a wait. Less than a millisecond is the time of a decision, not a wait.
func (w *waits) add(d time.Duration) {
	if d < time.Millisecond {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

// take returns the median and the 99th percentile since the previous call.
func (w *waits) take() (p50, p99 time.Duration) {
	w.mu.Lock()
	all := w.all
	w.all = nil
	w.mu.Unlock()
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)*50/100], all[len(all)*99/100]
}
