package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/internal/netname"
)

// Value is something that a request carries, "" if it doesn't.
type Value func(*http.Request) string

// Header is a header of the request, which anybody can write.
func Header(name string) Value {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string { return first(r.Header[name]) }
}

// Query is the first value of a parameter of the URL's query.
func Query(name string) Value { return func(r *http.Request) string { return r.URL.Query().Get(name) } }

// Cookie is the value of a cookie.
func Cookie(name string) Value {
	return func(r *http.Request) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
}

// Host is the host that the request asks for, in one spelling: small letters, no final dot, and no
// port 80 or 443.
func Host() Value { return func(r *http.Request) string { return netname.Host(r.Host) } }

// PathValue is what a wildcard of the route's pattern matched, as "id" in /users/{id}.
func PathValue(name string) Value { return func(r *http.Request) string { return r.PathValue(name) } }

// VerifiedPeer is who the client of a TLS connection is by a certificate that the server has
// verified: its SPIFFE ID, else its first DNS name, else its common name.
func VerifiedPeer() Value {
	return func(r *http.Request) string {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
			return ""
		}
		leaf := r.TLS.VerifiedChains[0][0]
		for _, uri := range leaf.URIs {
			if uri.Scheme == "spiffe" {
				return uri.String()
			}
		}
		if len(leaf.DNSNames) > 0 {
			return leaf.DNSNames[0]
		}
		return leaf.Subject.CommonName
	}
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
