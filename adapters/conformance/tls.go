package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// peer is the name in the certificates of [serveTLS]'s clients.
const peer = "spiffe://shop.test/basket"

// serveTLS serves h over HTTP/2 with TLS on the loopback interface until the test ends, and returns
// its URL. It makes the transport use HTTP/2, trust the server, and present a certificate, which
// the server verifies.
func serveTLS(t testing.TB, h http.Handler, transport *http.Transport, writeTimeout time.Duration) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		URIs:     []*url.URL{{Scheme: "spiffe", Host: "shop.test", Path: "/basket"}},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	clients, servers := x509.NewCertPool(), x509.NewCertPool()
	clients.AddCert(leaf)
	s := unstarted(h)
	s.EnableHTTP2 = true
	s.Config.WriteTimeout = writeTimeout
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients}
	s.StartTLS()
	t.Cleanup(func() { stop(s) })
	servers.AddCert(s.Certificate())
	transport.ForceAttemptHTTP2 = true
	transport.TLSClientConfig = &tls.Config{RootCAs: servers, Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	return s.URL
}

// unstarted returns a server whose logs of panics are discarded.
func unstarted(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

func stop(s *httptest.Server) {
	s.CloseClientConnections()
	s.Close()
}
