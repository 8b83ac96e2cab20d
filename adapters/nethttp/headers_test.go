package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The headers of responses that pass cost at most half of a guarded request.
func BenchmarkRateLimitHeaders(b *testing.B) {
	g, err := api.New(api.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	if err := g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /orders", Threshold: 1e9}}}); err != nil {
		b.Fatal(err)
	}
	for name, form := range map[string]refusal.Headers{"none": refusal.NoHeaders, "rateLimit": refusal.RateLimit, "xRateLimit": refusal.XRateLimit} {
		b.Run(name, func(b *testing.B) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {})
			h := nethttp.Handler(mux, nethttp.On(g), nethttp.RateLimitHeaders(form))
			r := httptest.NewRequest("GET", "/orders", nil)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				h.ServeHTTP(w, r)
			}
		})
	}
}
