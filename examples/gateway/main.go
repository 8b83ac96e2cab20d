// Gateway is a reverse proxy with API groups: each tenant may make two requests a minute to the shop,
// over all its routes, and each client one search at a time.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

const rules = `
groups:
  - id: shop
    paths:
      - path: /orders
      - {path: /orders/*, match: prefix}
      - {path: /carts/*/items, match: path}

gateway:
  - group: shop
    param: header
    name: X-Tenant
    threshold: 2
    interval: 1m
  - route: search
    param: clientIP
    metric: concurrency
    threshold: 1
`

func main() {
	set, err := api.ParseRules("rules.yaml", []byte(rules))
	if err != nil {
		log.Fatal(err)
	}
	if err := api.LoadRules(set); err != nil {
		log.Fatal(err)
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "served", r.URL.Path)
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	if err != nil {
		log.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(nethttp.Gateway(proxy, route))
	defer server.Close()

	for _, call := range []struct{ tenant, path string }{
		{"ann", "/orders"}, {"ann", "/orders/7"}, {"ann", "/carts/7/items"}, {"bob", "/orders"}, {"ann", "/search"},
	} {
		request, err := http.NewRequest(http.MethodGet, server.URL+call.path, nil)
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("X-Tenant", call.tenant)
		response, err := server.Client().Do(request)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(call.tenant, call.path+":", response.Status)
	}
}

// route returns the route of a request; a gateway would use its own table.
func route(r *http.Request) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "orders", "carts", "search":
		return first
	}
	return ""
}
