package pages_test

import (
	"context"
	"log"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/observe/console"
	"github.com/penstock-go/penstock/observe/metriclog"
	sentinel "github.com/penstock-go/penstock/observe/transport/sentinel"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/sources/httpsource"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/stat"
)

// More code from the pages, which compiles here.
var (
	_ = watched
	_ = rewritten
	_ = dashboard
	_ = foreign
	_ = converted
	_ = proxied
	_ = listed
	_ = allowed
	_ = stored
	_ = samples
	_ = percentiles
	_ = logged
	_ = inMemory
	_ = chained
	_ = bad
	_ = (*connections).Take
	_ = (*connections).GiveBack
)

func watched(ctx context.Context, token string) error {
	source, err := httpsource.New("https://config.internal/orders/rules.yaml", httpsource.Config{
		Header: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		return err
	}
	err = api.WatchSource(ctx, source, api.SourceOptions{Cache: "/var/lib/orders/rules.cache"})
	return err
}

func rewritten(ctx context.Context, source *httpsource.Source, changed []byte) (string, error) {
	doc, err := source.Next(ctx, "") // the document, and its revision
	if err != nil {
		return "", err
	}
	revision, err := source.Write(ctx, changed, doc.Revision) // "" where there is none yet
	return revision, err
}

func dashboard(ctx context.Context) {
	guard := api.Default()
	go func() {
		if err := console.ListenAndServe(ctx, guard, console.Config{}); err != nil {
			log.Print(err)
		}
	}()
}

func foreign(ctx context.Context) error {
	err := api.WatchRules(ctx, "flow-rules.json") // in any dialect
	return err
}

func converted() ([]byte, error) {
	parsed, err := rules.LoadWith("flow-rules.json", rules.ParseOptions{})
	if err != nil {
		return nil, err
	}
	text, err := parsed.Set.YAML()
	return text, err
}

func proxied(target *url.URL, route func(*http.Request) string) {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	log.Fatal(http.ListenAndServe(":8080", nethttp.Gateway(proxy, route)))
}

func listed(ctx context.Context) error {
	err := sentinel.ListenAndServe(ctx, api.Default(), sentinel.Config{
		App:        "orders",
		Dashboards: []string{"http://127.0.0.1:8080"},
	})
	return err
}

func allowed() sentinel.Config {
	return sentinel.Config{
		App:        "orders",
		Dashboards: []string{"http://10.1.0.5:8080"},
		Address:    "10.1.7.20:8720",
		AllowFrom:  []netip.Prefix{netip.MustParsePrefix("10.1.0.5/32")},
	}
}

func stored(ctx context.Context) (sentinel.Config, error) {
	file := rules.File{Path: "rules.yaml"}
	err := api.WatchRules(ctx, file.Path)
	return sentinel.Config{App: "orders", AllowRuleWrites: true, Store: file}, err
}

func samples(guard *api.Guard) (stat.View, error) {
	view, err := stat.NewView(guard.Nodes().Layout(), time.Minute, 12) // 12 samples of 5 s
	return view, err
}

func percentiles() (*api.Guard, error) {
	guard, err := api.New(api.Config{Percentiles: true})
	return guard, err
}

func logged() error {
	guard, err := api.New(api.Config{Chain: metriclog.Chain()})
	if err != nil {
		return err
	}
	log, err := metriclog.Start(guard, metriclog.Config{App: "shop"})
	if err != nil {
		return err
	}
	defer log.Close()
	return nil
}

func inMemory(clock *api.ManualClock) (*api.Guard, error) {
	store := cluster.NewMemory(clock) // the guards' api.ManualClock, or clocks.NewSystem()
	guard, err := api.New(api.Config{Clock: clock, Cluster: cluster.Config{Store: store}})
	return guard, err
}

func chained(slot slots.Slot) (*api.Guard, error) {
	chain := slots.Default().With(slot, slots.After("authority"))
	guard, err := api.New(api.Config{Chain: chain})
	return guard, err
}

func bad(c slots.Call) slots.Verdict {
	client, ok := c.Param("client") // not ok if the call has none, or several
	if ok && client == argument.Of("bad") {
		return c.Refuse("bad client")
	}
	return slots.Verdict{}
}

type connections struct{ free atomic.Int64 }

func (p *connections) Take(c slots.Call) slots.Verdict {
	for free := p.free.Load(); free > 0; free = p.free.Load() {
		if p.free.CompareAndSwap(free, free-1) {
			c.Hold(p, 1)
			return slots.Verdict{}
		}
	}
	return c.Refuse("no connection is free")
}

func (p *connections) GiveBack(units int64, _ time.Time) { p.free.Add(units) }
