package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/upstream"
)

// A client makes up to three attempts. The rule admits a retry only within its budget.
func ExampleRetries() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	if err := guard.LoadRules(api.RuleSet{Upstream: []upstream.Rule{{
		Resource: api.AnyResource, Obey: true, Retries: upstream.Retries{Share: 0.2, Least: 3},
	}}}); err != nil {
		panic(err)
	}
	client := &http.Client{Transport: nethttp.Transport(nil, nethttp.On(guard))}
	fetch := func(ctx context.Context) (resp *http.Response, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return nil, err
		}
		for attempt := range 3 {
			if attempt > 0 {
				ctx = api.WithRetry(ctx) // or, without an adapter, the option api.Retry()
			}
			resp, err = client.Do(request.WithContext(ctx))
			if err == nil || errors.Is(err, api.ErrRetryBudget) {
				break // another attempt doesn't help now
			}
		}
		return resp, err
	}
	resp, err := fetch(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(resp.StatusCode)
	_ = resp.Body.Close()
	_, err = fetch(context.Background())
	fmt.Println(api.KindOf(err))
	// Output:
	// 503
	// upstream
}

// busyError is the error of a server that has too much to do.
type busyError struct{ after time.Duration }

func (*busyError) Error() string { return "busy" }

// Code without an adapter reports that a server asked for a pause.
func ExampleRule() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	if err := guard.LoadRules(api.RuleSet{Upstream: []upstream.Rule{{Resource: "queue", Obey: true}}}); err != nil {
		panic(err)
	}
	send := func() error {
		e, err := guard.Entry(context.Background(), "queue")
		if err != nil {
			return err
		}
		defer e.Exit()
		err = &busyError{after: time.Minute} // by the server
		if late, ok := errors.AsType[*busyError](err); ok {
			err = api.Overloaded(err, late.after) // 0 if the server gave no time
		}
		e.Fail(err)
		return err
	}
	fmt.Println(send())
	fmt.Println(api.KindOf(send()))
	// Output:
	// busy
	// upstream
}
