package nethttp

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
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

// Host is the host that the request asks for.
func Host() Value { return func(r *http.Request) string { return r.Host } }

// PathValue is what a wildcard of the route's pattern matched, as "id" in /users/{id}.
func PathValue(name string) Value { return func(r *http.Request) string { return r.PathValue(name) } }

// TrustedHeader is a header of requests that come from one of these networks, such as those of
// one's own proxies, and "" for others.
func TrustedHeader(name string, from ...netip.Prefix) Value {
	header := Header(name)
	return func(r *http.Request) string {
		if peer, ok := remote(r); !ok || !contains(from, peer) {
			return ""
		}
		return header(r)
	}
}

// ClientIP is the address of the client. Behind proxies that is what X-Forwarded-For says, as far
// as these networks wrote it: the last address there that is in none of them. Without
// any, it is the other end of the connection.
func ClientIP(proxies ...netip.Prefix) Value {
	return func(r *http.Request) string {
		peer, ok := remote(r)
		if !ok {
			return ""
		}
		for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
			for _, text := range slices.Backward(strings.Split(line, ",")) {
				if !contains(proxies, peer) {
					return peer.String()
				}
				before, err := netip.ParseAddr(strings.TrimSpace(text))
				if err != nil {
					return peer.String() // it is unknown who came before
				}
				peer = before.Unmap().WithZone("")
			}
		}
		return peer.String()
	}
}

// ClientNetwork is the network of so many bits that an IPv6 address is in, such as 64, for a client who
// has a whole network has all of its addresses. IPv4 addresses, and what is no address, stay as they are.
func ClientNetwork(bits int, of Value) Value {
	return func(r *http.Request) string {
		value := of(r)
		address, err := netip.ParseAddr(value)
		if err != nil || address.Is4() {
			return value
		}
		network, err := address.Prefix(bits)
		if err != nil {
			return value
		}
		return network.String()
	}
}

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

// remote is the other end of the connection.
func remote(r *http.Request) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap().WithZone(""), err == nil
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}
