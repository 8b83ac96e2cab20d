package sentinel

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/netname"
	"github.com/penstock-go/penstock/rules"
)

// Config says where the command API listens, whom it serves and which dashboards it reports to. The
// zero value serves programs on the same machine, read-only, and reports to no dashboard.
type Config struct {
	// App is what dashboards call the program: up to 256 bytes. Required by Dashboards.
	App string
	// Dashboards are the addresses of Sentinel dashboards, as in "http://dashboard:8080". The
	// program reports to each one every ten seconds.
	Dashboards []string
	// Address is where to listen: an IP address and a port. "" is 127.0.0.1:8720, and no
	// port is 8720. Where a port is taken, the next one is tried, up to 20 of them, as Sentinel
	// does; port 0 is any free one.
	Address string
	// AllowFrom are the addresses whose requests are served. None is the loopback addresses.
	// Required where Address is another than a loopback address.
	AllowFrom []netip.Prefix
	// Hosts are names under which clients may ask for the API. Any IP address, and localhost, may
	// be used without being listed: other names can belong to a web site that makes its visitors'
	// browsers ask.
	Hosts []string
	// IP is the address at which dashboards reach the API. "" is the one of Address or, if that
	// is all of the machine's, the one from which it reaches the dashboard.
	IP string
	// AllowRuleWrites lets the addresses in AllowFrom replace rules.
	AllowRuleWrites bool
	// Store is what replaced rules are written to, such as a [rules.File] that the Guard
	// watches; they come into force through whatever watches it. With nil they take the place of
	// rules that were loaded by hand, and are forgotten when the program ends.
	Store Store
	// Listening, if not nil, is called with the address once the API listens.
	Listening func(netip.AddrPort)
}

// Store is a source of rules that can be written.
type Store interface {
	rules.Source
	rules.Writer
}

// DefaultPort is where the command API listens by default. Sentinel's own is 8719.
const DefaultPort = 8720

const maxApp = 256 // bytes, in Sentinel's dashboard

// checked is a Config that was found right, with its defaults.
type checked struct {
	Config
	at         netip.AddrPort
	dashboards []*url.URL
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func (c Config) check() (checked, error) {
	full := checked{Config: c}
	var err error
	if full.at, err = addressOf(c.Address); err != nil {
		return full, err
	}
	switch {
	case len(c.AllowFrom) > 0:
	case full.at.Addr().IsLoopback():
		full.AllowFrom = loopback
	default:
		return full, fmt.Errorf("penstock: Address is %q, which others can reach, and the command API knows no users: name those that it serves in AllowFrom", c.Address)
	}
	for _, p := range full.AllowFrom {
		if !p.IsValid() {
			return full, fmt.Errorf("penstock: AllowFrom has %v: use a prefix, as in 10.0.0.0/8", p)
		}
	}
	full.AllowFrom = netname.Networks(full.AllowFrom)
	if c.Store != nil && !c.AllowRuleWrites {
		return full, errors.New("penstock: there is a Store, and nothing is written to it without AllowRuleWrites: set that, or remove the Store")
	}
	if len(c.App) > maxApp {
		return full, fmt.Errorf("penstock: App has %d bytes, the most is %d", len(c.App), maxApp)
	}
	if len(c.Dashboards) > 0 && strings.TrimSpace(c.App) == "" {
		return full, errors.New("penstock: App is required: dashboards list the program by that name")
	}
	for _, text := range c.Dashboards {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return full, errors.New("penstock: one of Dashboards is no address: use one as in http://dashboard:8080")
		}
		full.dashboards = append(full.dashboards, u.JoinPath("registry", "machine"))
	}
	if c.IP != "" {
		if _, err := netip.ParseAddr(c.IP); err != nil {
			return full, fmt.Errorf("penstock: IP is %q, and dashboards take addresses only: use one as in 10.1.2.3", c.IP)
		}
	}
	return full, nil
}

// addressOf is the IP address and the port of an Address.
func addressOf(text string) (netip.AddrPort, error) {
	host, port := cmp.Or(text, "127.0.0.1"), strconv.Itoa(DefaultPort)
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	host = cmp.Or(strings.Trim(host, "[]"), "::")
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("penstock: Address is %q: use an IP address and a port, as in 127.0.0.1:%d", text, DefaultPort)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("penstock: the port of Address is %q: use a number up to 65535", port)
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

// allows reports whether requests of an address are served.
func (c *checked) allows(remote string) bool {
	ip, ok := netname.Address(remote)
	return ok && netname.Contains(c.AllowFrom, ip)
}

// knows reports whether a Host header names this program, and no web site whose name leads here.
func (c *checked) knows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	for _, name := range c.Hosts {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}
