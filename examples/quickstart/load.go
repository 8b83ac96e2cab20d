package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// stream sends requests of one kind at a steady rate, independent of the responses: an open loop,
// like many independent clients. rule is the rule that limits it.
type stream struct {
	name   string
	rule   string
	method string
	path   string
	key    string // of the API
	rate   int    // requests per second

	offered atomic.Int64 // due
	passed  atomic.Int64 // status 200
	blocked atomic.Int64 // status 429
	failed  atomic.Int64 // anything else
	unsent  atomic.Int64 // due, but no worker was free
}

func newStreams() []*stream {
	return []*stream{
		{name: "GET /orders/{id}", rule: "orders", method: "GET", path: "/orders/42", rate: 250},
		{name: "POST /reports", rule: "reports", method: "POST", path: "/reports", rate: 80},
		{name: "GET /search", rule: "search", method: "GET", path: "/search?q=pen", rate: 200},
		{name: "GET /catalog by acme", rule: "catalog-acme", method: "GET", path: "/catalog", key: "demo-acme", rate: 60},
		{name: "GET /catalog by globex", rule: "catalog-others", method: "GET", path: "/catalog", key: "demo-globex", rate: 40},
	}
}

// workers is the number of concurrent requests of a stream. The throttle keeps 40/s × 400 ms = 16
// waiting; the others finish in milliseconds.
const workers = 32

// load runs all streams.
type load struct {
	streams    []*stream
	start, end time.Time // end is zero if there is none

	url       string
	transport *http.Transport
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// startLoad sends requests for some seconds, or until ctx ends if seconds is 0. It starts with the
// next second of the clock, like the windows of the rules, so that each line of the table covers
// one window.
func startLoad(ctx context.Context, url string, seconds int) *load {
	l := &load{
		streams:   newStreams(),
		start:     time.Now().Truncate(time.Second).Add(time.Second),
		url:       url,
		transport: &http.Transport{},
	}
	l.transport.MaxIdleConnsPerHost = workers * len(l.streams)
	if seconds > 0 {
		l.end = l.start.Add(time.Duration(seconds) * time.Second)
	}
	ctx, l.cancel = context.WithCancel(ctx)
	client := &http.Client{Transport: l.transport}
	for _, s := range l.streams {
		due := make(chan struct{})
		l.running.Go(func() { l.schedule(ctx, s, due) })
		for range workers {
			l.running.Go(func() {
				for range due {
					l.send(ctx, client, s)
				}
			})
		}
	}
	return l
}

// stop ends the load, and returns when all its goroutines have ended.
func (l *load) stop() {
	l.cancel()
	l.running.Wait()
	l.transport.CloseIdleConnections()
}

// schedule passes requests to workers, each at its time. It doesn't wait for busy workers: a load that
// waits for the server would hide an overload.
func (l *load) schedule(ctx context.Context, s *stream, due chan<- struct{}) {
	defer close(due)
	for i := 0; ; i++ {
		at := l.start.Add(time.Duration(i) * time.Second / time.Duration(s.rate))
		if !l.end.IsZero() && !at.Before(l.end) || !sleepUntil(ctx, at) {
			return
		}
		s.offered.Add(1)
		select {
		case due <- struct{}{}:
		default:
			s.unsent.Add(1)
		}
	}
}

func (l *load) send(ctx context.Context, client *http.Client, s *stream) {
	status, err := l.request(ctx, client, s)
	switch {
	case ctx.Err() != nil: // the load has ended
	case err == nil && status == http.StatusOK:
		s.passed.Add(1)
	case err == nil && status == http.StatusTooManyRequests:
		s.blocked.Add(1)
	default:
		s.failed.Add(1)
	}
}

func (l *load) request(ctx context.Context, client *http.Client, s *stream) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, s.method, l.url+s.path, nil)
	if err != nil {
		return 0, err
	}
	if s.key != "" {
		r.Header.Set("X-API-Key", s.key)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body) // so that the connection is reused
	return response.StatusCode, err
}

// counts are the outcomes of a stream's requests.
type counts struct{ offered, passed, blocked, failed, unsent int64 }

func (s *stream) counts() counts {
	return counts{s.offered.Load(), s.passed.Load(), s.blocked.Load(), s.failed.Load(), s.unsent.Load()}
}

func (c counts) plus(d counts) counts {
	return counts{c.offered + d.offered, c.passed + d.passed, c.blocked + d.blocked, c.failed + d.failed, c.unsent + d.unsent}
}

func (c counts) minus(d counts) counts {
	return counts{c.offered - d.offered, c.passed - d.passed, c.blocked - d.blocked, c.failed - d.failed, c.unsent - d.unsent}
}

// counts returns the counts of each stream, and their sum.
func (l *load) counts() (each []counts, all counts) {
	for _, s := range l.streams {
		c := s.counts()
		each, all = append(each, c), all.plus(c)
	}
	return each, all
}

// sleepUntil returns false if ctx ends first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
