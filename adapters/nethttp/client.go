package nethttp

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/netname"
)

// Proxies says whose headers count: those of requests that come from one's own proxies. The zero
// value trusts nobody.
type Proxies struct {
	// Networks are the networks of the proxies. One of IPv4-mapped addresses is one of IPv4.
	Networks []netip.Prefix
	// UnixSocket trusts whoever connects by a Unix socket, such as nginx on the same machine. Such
	// a peer has no address; where it isn't trusted, its requests have no client.
	UnixSocket bool
}

// ClientIP is [Proxies.ClientIP] of proxies in these networks. Without any, it is the other end of
// the connection.
func ClientIP(proxies ...netip.Prefix) Value { return Proxies{Networks: proxies}.ClientIP() }

// TrustedHeader is [Proxies.Header] of proxies in these networks.
func TrustedHeader(name string, from ...netip.Prefix) Value {
	return Proxies{Networks: from}.Header(name)
}

// Header is a header of requests that the proxies pass on, and "" for others. Of several lines it
// is the last one, which the proxy has added.
func (p Proxies) Header(name string) Value {
	name = http.CanonicalHeaderKey(name)
	p.Networks = netname.Networks(p.Networks)
	return func(r *http.Request) string {
		if at := remote(r); !p.trusts(at) || len(r.Header[name]) == 0 {
			return ""
		}
		return r.Header[name][len(r.Header[name])-1]
	}
}

// ClientIP is the address of the client: that of the connection's other end, or, if that is a
// proxy, the last address of X-Forwarded-For that is not a proxy's. Addresses may have ports and
// brackets; zones are dropped, and an IPv4-mapped address is one of IPv4. Where a proxy wrote
// something else, the proxy is the client. The value is "" where no address is known, as for a Unix
// socket; a rule's field missing says what such a request means.
func (p Proxies) ClientIP() Value {
	p.Networks = netname.Networks(p.Networks)
	return func(r *http.Request) string {
		at := remote(r)
		client := at.text()
		for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
			for before := range lastFirst(line) {
				if !p.trusts(at) {
					return client
				}
				if at = named(before); at.unknown() {
					return client // it is unknown who came before
				}
				if text := at.text(); text != "" {
					client = text
				}
			}
		}
		return client
	}
}

// trusts reports whether the headers of a peer count.
func (p *Proxies) trusts(at peer) bool {
	return at.socket && p.UnixSocket || at.ip.IsValid() && netname.Contains(p.Networks, at.ip)
}

// peer is an end of a connection.
type peer struct {
	ip     netip.Addr // invalid if it has none
	socket bool       // a Unix socket
}

func (p peer) unknown() bool { return !p.socket && !p.ip.IsValid() }

// text is the address, "" if there is none.
func (p peer) text() string {
	if !p.ip.IsValid() {
		return ""
	}
	return p.ip.String()
}

// remote is the other end of the connection. Servers leave out the address of a Unix socket without
// a name, or write @. Middlewares write what a header says, so it counts as a socket only if the
// server's own end is one, where that is known.
func remote(r *http.Request) peer {
	at := named(r.RemoteAddr)
	if at.socket = at.socket || r.RemoteAddr == ""; at.socket {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		at.socket = !ok || strings.HasPrefix(local.Network(), "unix")
	}
	return at
}

// named is the peer that a server or a proxy names.
func named(text string) peer {
	text = strings.TrimSpace(text)
	if ip, ok := netname.Address(text); ok {
		return peer{ip: ip}
	}
	return peer{socket: strings.HasPrefix(text, "@") || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "unix:")}
}

// lastFirst are the parts of a list, from its end: those before an untrusted one cost nothing.
func lastFirst(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for more := true; more; {
			i := strings.LastIndexByte(list, ',')
			if more = i >= 0; !yield(list[i+1:]) {
				return
			}
			list = list[:max(i, 0)]
		}
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
