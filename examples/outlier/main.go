// Outlier shows how failing servers are ejected while the others serve: a client with an
// http.RoundTripper that picks among three servers on this machine.
//
//	go run ./examples/outlier
package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/outlier"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// balancer sends each request to the next server that is not ejected.
type balancer struct {
	guard *api.Guard
	hosts []string
	turn  atomic.Uint64
	base  http.RoundTripper
}

func (b *balancer) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	avoid := b.guard.Ejected("payments")
	for range b.hosts {
		host := b.hosts[b.turn.Add(1)%uint64(len(b.hosts))]
		if slices.Contains(avoid, host) {
			continue
		}
		resp, err = b.send(r, host)
		if api.KindOf(err) != api.KindOutlier { // otherwise it was ejected in between
			return resp, err
		}
	}
	return nil, err
}

func (b *balancer) send(r *http.Request, host string) (resp *http.Response, err error) {
	e, err := b.guard.Entry(r.Context(), "payments", api.Endpoint(host))
	if err != nil {
		return nil, err
	}
	var failure error // of the server; a response such as "not found" is not a failure
	defer e.ExitOn(&failure)
	r = r.Clone(r.Context())
	r.URL.Host = host
	resp, err = b.base.RoundTrip(r)
	switch {
	case err != nil:
		failure = err
	case resp.StatusCode >= http.StatusInternalServerError:
		failure = fmt.Errorf("%s answers %s", host, resp.Status)
	}
	return resp, err
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()

	// A server is ejected when half of its calls in a second fail, if there were at least five;
	// after two seconds one call probes it. At most half of the servers are ejected at the same
	// time.
	err = guard.LoadRules(api.RuleSet{Outlier: []outlier.Rule{{
		Resource: "payments", Threshold: 0.5, MinCalls: 5, Interval: time.Second, Recovery: 2 * time.Second, MaxEjected: 0.5,
	}}})
	if err != nil {
		return err
	}

	var broken [3]atomic.Bool
	var hosts []string
	name := make(map[string]string)
	for i := range broken {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if broken[i].Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
		defer server.Close()
		hosts = append(hosts, server.Listener.Addr().String())
		name[hosts[i]] = string(rune('a' + i))
	}
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &balancer{guard: guard, hosts: hosts, base: base}}

	second := func(what string) error {
		served, failed := make(map[string]int), 0
		for range 30 {
			resp, err := client.Get("http://payments/")
			if err != nil {
				return err
			}
			resp.Body.Close()
			served[resp.Request.URL.Host]++
			if resp.StatusCode != http.StatusOK {
				failed++
			}
			clock.Advance(time.Second / 30)
		}
		out := "nobody"
		if ejected := guard.Ejected("payments"); len(ejected) > 0 {
			out = name[ejected[0]] // at most one of three
		}
		fmt.Fprintf(w, "%-21s a %2d, b %2d, c %2d, failed %2d, ejected: %s\n", what,
			served[hosts[0]], served[hosts[1]], served[hosts[2]], failed, out)
		return nil
	}
	for _, step := range []struct {
		what   string
		broken [3]bool
	}{
		{"all work", [3]bool{}},
		{"c fails", [3]bool{2: true}},
		{"", [3]bool{2: true}},
		{"", [3]bool{2: true}},
		{"", [3]bool{2: true}},
		{"b fails as well", [3]bool{1: true, 2: true}}, // still at most one
		{"", [3]bool{1: true, 2: true}},
		{"all work again", [3]bool{}},
		{"", [3]bool{}},
		{"", [3]bool{}},
	} {
		for i := range broken {
			broken[i].Store(step.broken[i])
		}
		if err := second(step.what); err != nil {
			return err
		}
	}
	return nil
}
