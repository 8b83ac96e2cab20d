package penstockkratos_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/emptypb"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

// each admits one call of each client, and none without a client.
var each = api.RuleSet{Hotspot: []hotspot.Rule{{
	Resource: ".*", Match: api.MatchRegex, Param: "client", Threshold: 1, Interval: time.Hour, Missing: hotspot.MissingRefuse,
}}}

var proxies = nethttp.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, UnixSocket: true}

// Over HTTP a call's client is its request's client.
func TestClientAddressesByHTTP(t *testing.T) {
	g := guard(t, each)
	address := serveHTTP(t, func(srv *khttp.Server) { route(srv, "/x", func(context.Context) error { return nil }) },
		khttp.Middleware(penstockkratos.Server(penstockkratos.On(g), penstockkratos.Param("client", proxies.ClientIP()))))
	client := dialHTTP(t, address)
	for _, of := range []struct {
		forwarded string
		refused   bool
	}{{"203.0.113.1", false}, {"203.0.113.1:4711", true}, {"[2001:db8::1]:443", false}, {"2001:db8::1", true}, {"unknown", false}, {"", true}} {
		err := client.Invoke(t.Context(), http.MethodGet, "/x", nil, &emptypb.Empty{}, khttp.Header(&http.Header{"X-Forwarded-For": {of.forwarded}}))
		assert.Equal(t, of.refused, err != nil, "%s: %v", of.forwarded, err)
	}
}

// header is the metadata of a gRPC call.
type header map[string][]string

func (h header) Get(key string) string {
	if len(h[key]) == 0 {
		return ""
	}
	return h[key][0]
}
func (h header) Set(key, value string)      { h[key] = []string{value} }
func (h header) Add(key, value string)      { h[key] = append(h[key], value) }
func (h header) Values(key string) []string { return h[key] }
func (h header) Keys() (keys []string) {
	for k := range h {
		keys = append(keys, k)
	}
	return keys
}

// byGRPC is a gRPC transport with such metadata.
type byGRPC struct{ header }

func (byGRPC) Kind() transport.Kind              { return transport.KindGRPC }
func (byGRPC) Endpoint() string                  { return "" }
func (byGRPC) Operation() string                 { return "/a.B/C" }
func (c byGRPC) RequestHeader() transport.Header { return c.header }
func (byGRPC) ReplyHeader() transport.Header     { return header{} }

// Over gRPC the client is the other end of the connection, or the client that a trusted proxy names.
func TestClientAddressesByGRPC(t *testing.T) {
	g := guard(t, each)
	var seen *http.Request
	serve := penstockkratos.Server(penstockkratos.On(g), penstockkratos.Param("client", func(r *http.Request) string {
		seen = r
		return proxies.ClientIP()(r)
	}))(func(context.Context, any) (any, error) { return "", nil })
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 80} }
	for _, of := range []struct {
		remote, local net.Addr
		forwarded     string
		refused       bool
	}{
		{tcp("127.0.0.1"), tcp("127.0.0.1"), "203.0.113.1", false},
		{tcp("127.0.0.1"), tcp("127.0.0.1"), "203.0.113.1:4711", true},
		{tcp("203.0.113.1"), tcp("127.0.0.1"), "203.0.113.2", true},
		{&net.UnixAddr{}, &net.UnixAddr{Name: "/run/x", Net: "unix"}, "203.0.113.1", true},
		{&net.UnixAddr{}, &net.UnixAddr{Name: "/run/x", Net: "unix"}, "203.0.113.2", false},
		{nil, nil, "203.0.113.3", true},
	} {
		ctx := transport.NewServerContext(t.Context(), byGRPC{header{"x-forwarded-for": {of.forwarded}, ":authority": {"a.test"}}})
		if of.remote != nil {
			ctx = peer.NewContext(ctx, &peer.Peer{Addr: of.remote, LocalAddr: of.local})
		}
		_, err := serve(ctx, nil)
		assert.Equal(t, of.refused, err != nil, "%v %s: %v", of.remote, of.forwarded, err)
	}
	assert.Equal(t, "/a.B/C", seen.URL.Path)
	assert.Equal(t, "a.test", seen.Host)
}
