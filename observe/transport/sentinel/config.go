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

// Config configures the command API: where it listens, which clients it serves, and which
// dashboards it reports to. The zero value serves programs on the same machine, read-only, and
// reports to no dashboard.
type Config struct {
	// App is the program's name on dashboards: up to 256 bytes. Required with Dashboards.
	App string
	// Dashboards are the URLs of Sentinel dashboards, such as "http://dashboard:8080". The program
	// reports to each of them every ten seconds.
	Dashboards []string
	// Address is the IP address and port to listen at. "" means 127.0.0.1:8720; the default port is
	// 8720. If a port is taken, up to 20 following ports are tried, as in Sentinel; port 0 means
	// any free port.
	Address string
	// AllowFrom are the networks whose requests are served; none means loopback addresses. Required
	// if Address is not a loopback address.
	AllowFrom []netip.Prefix
	// Hosts are further names of the API in requests. IP addresses and localhost are always
	// accepted; other names might belong to a web site that makes its visitors' browsers send
	// requests.
	Hosts []string
	// IP is the address at which dashboards reach the API. "" means the IP address in Address or, if
	// that stands for all addresses, the address from which the program reaches the dashboard.
	IP string
	// AllowRuleWrites lets clients in AllowFrom replace rules.
	AllowRuleWrites bool
	// Store receives replaced rules, such as a [rules.File] that the Guard watches; the watcher
	// puts them in force. If Store is nil, they replace the rules loaded by code, and are lost when
	// the program ends.
	Store Store
	// Listening, if not nil, is called with the address once the API listens.
	Listening func(netip.AddrPort)
}

// Store is a source of rules that can be written.
type Store interface {
	rules.Source
	rules.Writer
}

// DefaultPort is the default port of the command API. Sentinel's default is 8719.
const DefaultPort = 8720

const maxApp = 256 // limit in bytes of Sentinel's dashboard

// checked is a valid Config with its defaults.
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
		return full, fmt.Errorf("penstock: Address is %q, which other machines can reach, and the command API has no authentication: set AllowFrom", c.Address)
	}
	for _, p := range full.AllowFrom {
		if !p.IsValid() {
			return full, fmt.Errorf("penstock: AllowFrom has %v: use a prefix such as 10.0.0.0/8", p)
		}
	}
	full.AllowFrom = netname.Networks(full.AllowFrom)
	if c.Store != nil && !c.AllowRuleWrites {
		return full, errors.New("penstock: Store has no effect without AllowRuleWrites: set that, or remove the Store")
	}
	if len(c.App) > maxApp {
		return full, fmt.Errorf("penstock: App has %d bytes, the maximum is %d", len(c.App), maxApp)
	}
	if len(c.Dashboards) > 0 && strings.TrimSpace(c.App) == "" {
		return full, errors.New("penstock: App is required: dashboards list the program by that name")
	}
	for _, text := range c.Dashboards {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return full, errors.New("penstock: Dashboards has an invalid URL: use one such as http://dashboard:8080")
		}
		full.dashboards = append(full.dashboards, u.JoinPath("registry", "machine"))
	}
	if c.IP != "" {
		if _, err := netip.ParseAddr(c.IP); err != nil {
			return full, fmt.Errorf("penstock: IP is %q: use an IP address such as 10.1.2.3", c.IP)
		}
	}
	return full, nil
}

// addressOf parses the IP address and the port of an Address.
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
		return netip.AddrPort{}, fmt.Errorf("penstock: Address is %q: use an IP address and a port, such as 127.0.0.1:%d", text, DefaultPort)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("penstock: the port of Address is %q: use a number up to 65535", port)
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

// allows reports whether requests from an address are served.
func (c *checked) allows(remote string) bool {
	ip, ok := netname.Address(remote)
	return ok && netname.Contains(c.AllowFrom, ip)
}

// knows reports whether a Host header names this program, rather than a web site that resolves to it.
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
