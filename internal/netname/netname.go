// Package netname parses the network names of clients: addresses, in every form that servers and
// proxies write, and host names, which it brings into one spelling.
package netname

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Address returns the IP address in text, which may have a port, brackets or both. IPv4-mapped
// addresses are unmapped, and a zone is dropped, since the other end chooses neither.
func Address(text string) (a netip.Addr, ok bool) {
	text = strings.TrimSpace(text)
	a, err := netip.ParseAddr(text)
	if err != nil {
		if host, _, split := net.SplitHostPort(text); split == nil {
			text = host
		} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			text = text[1 : len(text)-1]
		}
		a, err = netip.ParseAddr(text)
	}
	return a.Unmap().WithZone(""), err == nil
}

// Networks returns networks that match the results of [Address]: networks of IPv4-mapped addresses
// become IPv4 networks, others are unchanged.
func Networks(all []netip.Prefix) []netip.Prefix {
	all = slices.Clone(all)
	for i, p := range all {
		if p.Addr().Is4In6() && p.Bits() >= mapped {
			all[i] = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
		}
	}
	return all
}

// mapped is the number of leading bits common to IPv4-mapped addresses.
const mapped = 96

// Contains reports whether an address is in one of the networks.
func Contains(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Host returns a host, with or without a port, in its canonical spelling: lower case, no final dot,
// and no port 80 or 443. The default port depends on the scheme, which a server behind a proxy
// doesn't know; see [HostOf].
func Host(host string) string { return spelled(host, "80", "443") }

// HostOf is like [Host], but for a known scheme: it leaves out only the default port of that
// scheme.
func HostOf(scheme, host string) string {
	switch scheme {
	case "http", "ws":
		return spelled(host, "80", "")
	case "https", "wss":
		return spelled(host, "443", "")
	}
	return spelled(host, "", "")
}

// spelled returns a host without either of the two ports.
func spelled(host, some, other string) string {
	if plain(host, some, other) {
		return host
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 && !bare(host) {
		name, port = host[:i], host[i+1:]
	}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		port = strconv.FormatUint(n, 10)
	}
	if strings.HasPrefix(name, "[") {
		a, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if err != nil {
			return strings.ToLower(host)
		}
		name = "[" + a.String() + "]"
	} else if short := strings.TrimRight(name, "."); short != "" {
		name = short
	}
	name = strings.ToLower(name)
	if port == "" || port == some || port == other {
		return name
	}
	return name + ":" + port
}

// plain reports whether a host is obviously canonical, so that most hosts cost nothing.
func plain(host, some, other string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i < len(host)-1 && host[i+1] != ':':
		case c == ':' && i > 0:
			port := host[i+1:]
			return digits(port) && port[0] != '0' && port != some && port != other
		default:
			return false
		}
	}
	return true
}

// digits reports whether text is a number of up to five digits.
func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return 0 < len(text) && len(text) <= 5
}

// bare reports whether host is an IPv6 address without brackets, whose last colon precedes no port.
func bare(host string) bool {
	return strings.IndexByte(host, ':') != strings.LastIndexByte(host, ':') && !strings.HasPrefix(host, "[")
}
