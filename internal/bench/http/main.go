// Command http measures the cost of guarding a minimal server: in allocations per request, and in
// time over a keep-alive loopback connection, next to the unguarded server and to other libraries.
// All run in turns in one process, some dozen requests at a time, so that disturbances hit all
// alike; the table has the median of each one's time relative to its bare server next to it.
//
//	go run . -rounds 600     # in internal/bench/http
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v5"
	"golang.org/x/time/rate"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// many is a limit that is never reached.
const many = 1e9

// server is one row: its guard, relative to the bare server, the first row of its framework.
type server struct {
	framework, guard string
	handler          http.Handler
	path             string // of the request
}

func servers() []server {
	const body = "ok"
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", answer)
	limiter := rate.NewLimiter(many, many)
	withGin := func(use ...gin.HandlerFunc) http.Handler {
		r := gin.New()
		r.Use(use...)
		r.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, body) })
		return r
	}
	withEcho := func(use ...echo.MiddlewareFunc) http.Handler {
		e := echo.New()
		e.Use(use...)
		e.GET("/orders/:id", func(c *echo.Context) error { return c.String(http.StatusOK, body) })
		return e
	}
	plain := http.NewServeMux()
	plain.Handle("GET /orders", answer)
	single := http.NewServeMux()
	single.Handle("GET /orders", nethttp.Middleware()(answer))
	limited := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !limiter.Allow() {
				http.Error(w, "too many", http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	const one, all = "/orders/7", "/orders"
	return []server{
		{"net/http", "none", plain, all},
		{"net/http", "Penstock, Handler", nethttp.Handler(plain), all},
		{"net/http", "Penstock, Middleware", single, all},
		{"net/http", "x/time/rate", limited(plain), all},
		{"net/http, a wildcard", "none", mux, one},
		{"net/http, a wildcard", "Penstock, Handler", nethttp.Handler(mux), one},
		{"gin", "none", withGin(), one},
		{"gin", "Penstock", withGin(penstockgin.Middleware()), one},
		{"gin", "sentinel-golang", withGin(func(c *gin.Context) {
			e, blocked := sentinel.Entry(c.Request.Method+":"+c.FullPath(), sentinel.WithTrafficType(base.Inbound), sentinel.WithResourceType(base.ResTypeWeb))
			if blocked != nil {
				c.AbortWithStatus(http.StatusTooManyRequests)
				return
			}
			defer e.Exit()
			c.Next()
		}), one},
		{"echo", "none", withEcho(), one},
		{"echo", "Penstock", withEcho(penstockecho.Middleware()), one},
		{"echo", "sentinel-golang", withEcho(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				e, blocked := sentinel.Entry(c.Request().Method+":"+c.Path(), sentinel.WithTrafficType(base.Inbound), sentinel.WithResourceType(base.ResTypeWeb))
				if blocked != nil {
					return c.NoContent(http.StatusTooManyRequests)
				}
				defer e.Exit()
				return next(c)
			}
		}), one},
	}
}

func main() {
	rounds := flag.Int("rounds", 600, "rounds: turns of each server")
	requests := flag.Int("requests", 40, "requests per turn")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	conf := config.NewDefaultConfig()
	conf.Sentinel.Log.Dir = os.TempDir()
	if err := sentinel.InitWithConfig(conf); err != nil {
		log.Fatal(err)
	}
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{Resource: "GET /orders", Threshold: 1e6}, {Resource: "GET /orders/{id}", Threshold: 1e6}, {Resource: "GET /orders/:id", Threshold: 1e6},
	}})
	if err != nil {
		log.Fatal(err)
	}
	all := servers()
	took := make([][]time.Duration, len(all))
	clients := make([]func(int) time.Duration, len(all))
	for i, s := range all {
		clients[i] = client(s)
		clients[i](*requests)
	}
	for round := range *rounds {
		for k := range all {
			i := k
			if round%2 == 1 {
				i = len(all) - 1 - k
			}
			took[i] = append(took[i], clients[i](*requests))
		}
		fmt.Fprintf(os.Stderr, "\rround %d of %d", round+1, *rounds)
	}
	fmt.Fprintln(os.Stderr)
	fmt.Println("| server | guard | allocations a request | time of a request |\n|---|---|---|---|")
	for i, s := range all {
		bare := slices.IndexFunc(all, func(b server) bool { return b.framework == s.framework })
		n := allocations(s)
		if i == bare {
			fmt.Printf("| %s | %s | %.0f | 1 |\n", s.framework, s.guard, n)
			continue
		}
		var ratios []float64
		for round := range took[i] {
			ratios = append(ratios, float64(took[i][round])/float64(took[bare][round]))
		}
		fmt.Printf("| %s | %s | +%.0f | x %.3f |\n", s.framework, s.guard, n-allocations(all[bare]), median(ratios))
	}
}

// client starts the server and returns a function that sends requests over one connection.
func client(s server) func(requests int) time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(l, s.handler)) }()
	c := &http.Client{Transport: &http.Transport{}}
	at := "http://" + l.Addr().String() + s.path
	return func(requests int) time.Duration {
		began := time.Now()
		for range requests {
			resp, err := c.Get(at)
			if err != nil {
				log.Fatal(err)
			}
			if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				log.Fatal(resp.Status, err)
			}
			resp.Body.Close()
		}
		return time.Since(began)
	}
}

// allocations returns the allocations of serving one request, without the server's own.
func allocations(s server) float64 {
	r := httptest.NewRequest(http.MethodGet, s.path, nil)
	w := discard{make(http.Header)}
	return testing.AllocsPerRun(500, func() { s.handler.ServeHTTP(w, r) })
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
