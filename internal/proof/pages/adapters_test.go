package pages_test

import (
	"database/sql"
	"log"
	"net/http"
	"net/netip"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/adapters/sqldriver"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code on the pages of adapters in the main module. The code on the pages of nested modules is
// in those modules, in page_test.go.
var (
	_ = listened
	_ = handled
	_ = nested
	_ = crossed
	_ = optioned
	_ = behindASocket
	_ = billed
	_ = transported
	_ = perHost
	_ = perService
	_ = opened
)

func listened(mux *http.ServeMux) error {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /users/{id}", Threshold: 10}}}) // a second
	if err != nil {
		return err
	}
	return http.ListenAndServe(":8080", nethttp.Handler(mux))
}

func handled(mux *http.ServeMux, orders http.Handler) {
	mux.Handle("GET /orders", nethttp.Middleware()(orders))
}

func nested(outer, inner *http.ServeMux) { outer.Handle("GET /api/", nethttp.Handler(inner)) }

func crossed(cors func(http.Handler) http.Handler, mux *http.ServeMux) {
	log.Fatal(http.ListenAndServe(":8080", cors(nethttp.Handler(mux))))
}

func optioned() {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} // of your own
	nethttp.Origin(nethttp.VerifiedPeer())                         // of client certificates
	nethttp.Origin(nethttp.TrustedHeader("X-App", proxies...))     // what your proxies say

	nethttp.Param("user", nethttp.TrustedHeader("X-User", proxies...))
	nethttp.Param("tenant", nethttp.Header("X-Tenant")) // whoever sends it
	nethttp.Param("ip", nethttp.ClientIP(proxies...))   // X-Forwarded-For of these only
	nethttp.Param("id", nethttp.PathValue("id"))
	nethttp.Plan(func(r *http.Request) string {
		plan, _ := r.Context().Value(planKey{}).(string)
		return plan
	})
}

func behindASocket(networks []netip.Prefix) {
	proxies := nethttp.Proxies{UnixSocket: true, Networks: networks}
	nethttp.Param("ip", proxies.ClientIP())
	nethttp.Origin(proxies.Header("X-App"))
}

func billed(w http.ResponseWriter, r *http.Request) {
	e, err := api.Entry(r.Context(), "billing")
	if err != nil {
		refusal.Write(w, r, err)
		return
	}
	defer e.Exit()
}

func transported() *http.Client {
	client := &http.Client{Transport: nethttp.Transport(nil)}
	return client
}

func perHost() *http.Client {
	client := &http.Client{Transport: nethttp.Transport(nil, nethttp.PerHost())}
	return client
}

func perService() {
	nethttp.Resource(func(*http.Request, string) string { return "payments" })
}

func opened(dsn string) (*sql.DB, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "sql orders", Threshold: 10}}}) // a second
	if err != nil {
		return nil, err
	}

	db, err := sqldriver.Open("pgx", dsn, "orders") // instead of sql.Open("pgx", dsn)
	return db, err
}

type planKey struct{}
