package penstockgrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
)

// A certificate identifies a client only if the server has verified it.
func TestVerifiedPeer(t *testing.T) {
	spiffe, web := &url.URL{Scheme: "spiffe", Host: "acme", Path: "/billing"}, &url.URL{Scheme: "https", Host: "acme"}
	all := &x509.Certificate{URIs: []*url.URL{web, spiffe}, DNSNames: []string{"billing.acme"}, Subject: pkix.Name{CommonName: "billing"}}
	verified := func(c *x509.Certificate) credentials.AuthInfo {
		return credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}}}
	}
	for _, tt := range []struct {
		name string
		info credentials.AuthInfo
		want string
	}{
		{"no TLS", nil, ""},
		{"no certificate", credentials.TLSInfo{}, ""},
		{"not verified", credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{all}}, SPIFFEID: spiffe}, ""},
		{"SPIFFE ID", verified(all), "spiffe://acme/billing"},
		{"DNS name", verified(&x509.Certificate{URIs: []*url.URL{web}, DNSNames: all.DNSNames, Subject: all.Subject}), "billing.acme"},
		{"common name", verified(&x509.Certificate{Subject: all.Subject}), "billing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: tt.info})
			if got := penstockgrpc.VerifiedPeer(ctx, unaryCall); got != tt.want {
				t.Errorf("it is %q, not %q", got, tt.want)
			}
		})
	}
	if got := penstockgrpc.VerifiedPeer(context.Background(), unaryCall); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
