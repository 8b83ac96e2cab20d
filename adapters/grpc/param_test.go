package penstockgrpc_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

// A call's client is the other end of its connection, or the client that a trusted proxy names.
func TestClientAddresses(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, tt := range map[string]struct {
		network   string
		proxies   nethttp.Proxies
		forwarded []string
		refused   []bool
	}{
		"a proxy":        {"tcp", nethttp.Proxies{Networks: loopback}, []string{"203.0.113.1", "203.0.113.1:80", "[2001:db8::1]:443", "2001:db8::1"}, []bool{false, true, false, true}},
		"nobody's proxy": {"tcp", nethttp.Proxies{UnixSocket: true}, []string{"203.0.113.1", "203.0.113.2"}, []bool{false, true}},
		"a socket":       {"unix", nethttp.Proxies{UnixSocket: true}, []string{"203.0.113.1", "203.0.113.1:80", "203.0.113.2"}, []bool{false, true, false}},
		"nobody's":       {"unix", nethttp.Proxies{Networks: loopback}, []string{"203.0.113.1"}, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := api.New(api.Config{})
			fine(t, err)
			defer g.Close()
			fine(t, g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
				Resource: penstockgrpc.Unknown, Param: "client", Threshold: 1, Interval: time.Hour, Missing: hotspot.MissingRefuse,
			}}}))
			at := "127.0.0.1:0"
			if tt.network == "unix" {
				at = filepath.Join(t.TempDir(), "s")
			}
			listener, err := net.Listen(tt.network, at)
			fine(t, err)
			var seen *http.Request
			server := grpc.NewServer(append(penstockgrpc.ServerOptions(penstockgrpc.On(g), penstockgrpc.Param("client", func(r *http.Request) string {
				seen = r
				return tt.proxies.ClientIP()(r)
			})), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "") }))...)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			target := "passthrough:///" + listener.Addr().String()
			if tt.network == "unix" {
				target = "unix:" + at
			}
			conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
			fine(t, err)
			defer conn.Close()
			for i, from := range tt.forwarded {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", from)
				want := codes.Unimplemented
				if tt.refused[i] {
					want = codes.ResourceExhausted
				}
				if got := status.Code(conn.Invoke(ctx, "/a.B/C", &emptypb.Empty{}, &emptypb.Empty{})); got != want {
					t.Errorf("%s: %v", from, got)
				}
			}
			if seen.URL.Path != "/a.B/C" || seen.Host == "" || seen.TLS != nil {
				t.Errorf("the value has seen %+v", seen)
			}
		})
	}
}

// A client's calls carry no parameter, and a call without a peer has no client.
func TestParamOfOthers(t *testing.T) {
	g, err := api.New(api.Config{})
	fine(t, err)
	defer g.Close()
	fine(t, g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "/a.B/C", Param: "client", Threshold: 0}}}))
	opts := []penstockgrpc.Option{penstockgrpc.On(g), penstockgrpc.Param("client", nethttp.Proxies{UnixSocket: true}.ClientIP())}
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-forwarded-for", "203.0.113.1"))
	fine(t, penstockgrpc.UnaryClientInterceptor(opts...)(ctx, "/a.B/C", nil, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }))
	_, err = penstockgrpc.UnaryServerInterceptor(opts...)(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
		func(context.Context, any) (any, error) { return "", nil })
	fine(t, err)
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
