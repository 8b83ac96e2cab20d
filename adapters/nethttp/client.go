package nethttp

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/netname"
)

// Proxies lists the program's own proxies; only their headers are trusted. The zero value trusts
// nobody.
type Proxies struct {
	// Networks are the networks of the proxies. A network of IPv4-mapped addresses is one of IPv4.
	Networks []netip.Prefix
	// UnixSocket trusts every peer on a Unix socket, such as nginx on the same machine. Such a peer
	// has no address; if untrusted, its requests have no client.
	UnixSocket bool
}

// ClientIP is like [Proxies.ClientIP], but trusts proxies in the given networks. Without any, it
// returns the other end of the connection.
func ClientIP(proxies ...netip.Prefix) Value { return Proxies{Networks: proxies}.ClientIP() }

// TrustedHeader is like [Proxies.Header], but trusts proxies in the given networks.
func TrustedHeader(name string, from ...netip.Prefix) Value {
	return Proxies{Networks: from}.Header(name)
}

// Header returns a header of requests that come from the proxies, and "" for others. Of several
// lines it takes the last one, which the proxy has added.
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

// ClientIP returns the address of the client: the other end of the connection or, if that is a
// proxy, the last address in X-Forwarded-For that is not a proxy's. Addresses may have ports and
// brackets; zones are dropped, and an IPv4-mapped address becomes an IPv4 address. If a proxy wrote
// something else, the proxy is the client. The value is "" if no address is known, as for a Unix
// socket; a rule's field missing decides about such requests.
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
					return client // the hop before is unknown
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
	ip     netip.Addr // invalid if the peer has no address
	socket bool       // connected through a Unix socket
}

func (p peer) unknown() bool { return !p.socket && !p.ip.IsValid() }

// text returns the address, or "" if there is none.
func (p peer) text() string {
	if !p.ip.IsValid() {
		return ""
	}
	return p.ip.String()
}

// remote returns the other end of the connection. Servers leave out the address of an unnamed Unix
// socket, or write @. Middlewares write header values there, so the peer counts as a socket only if
// the server's own end is one, where that is known.
func remote(r *http.Request) peer {
	at := named(r.RemoteAddr)
	if at.socket = at.socket || r.RemoteAddr == ""; at.socket {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		at.socket = !ok || strings.HasPrefix(local.Network(), "unix")
	}
	return at
}

// named parses a peer as a server or a proxy writes it.
func named(text string) peer {
	text = strings.TrimSpace(text)
	if ip, ok := netname.Address(text); ok {
		return peer{ip: ip}
	}
	return peer{socket: strings.HasPrefix(text, "@") || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "unix:")}
}

// lastFirst yields the parts of a list from its end: parts before an untrusted one cost nothing.
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

// ClientNetwork returns the network of that many bits around an IPv6 address. Use 64, since one
// client usually owns a whole /64. IPv4 addresses and other texts stay unchanged.
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
