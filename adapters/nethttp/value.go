package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/internal/netname"
)

// Value returns one value of a request, or "" if the request has none.
type Value func(*http.Request) string

// Header returns a header of the request. Any client can forge it.
func Header(name string) Value {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string { return first(r.Header[name]) }
}

// Query returns the first value of a parameter of the URL's query.
func Query(name string) Value { return func(r *http.Request) string { return r.URL.Query().Get(name) } }

// Cookie returns the value of a cookie.
func Cookie(name string) Value {
	return func(r *http.Request) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
}

// Host returns the host that the request asks for, normalized: lower case, without a final dot, and
// without port 80 or 443.
func Host() Value { return func(r *http.Request) string { return netname.Host(r.Host) } }

// PathValue returns the part of the path that a wildcard of the route's pattern matched, such as
// "id" in /users/{id}.
func PathValue(name string) Value { return func(r *http.Request) string { return r.PathValue(name) } }

// VerifiedPeer returns the name of a TLS client from a certificate that the server has verified:
// its SPIFFE ID, else its first DNS name, else its common name.
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
