package console

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// DefaultAddr is where the console listens by default.
const DefaultAddr = "127.0.0.1:8719"

// Config says where the console listens, who may read and who may change rules. The zero value is
// for one's own machine: loopback, no tokens, nothing can be changed.
type Config struct {
	// Addr is the address to listen on, "" is [DefaultAddr]. The port 0 takes a free one. An
	// address that others can reach needs ReadToken and TLS, or Insecure.
	Addr string
	// TLS is the configuration with the certificate to serve HTTPS; nil is HTTP.
	TLS *tls.Config
	// Insecure allows an address that others can reach without ReadToken or TLS. Whoever reaches it then
	// sees names of resources and callers, traffic and rules, and may intercept tokens in
	// transit.
	Insecure bool

	// ReadToken has to come with every request for data, as "Authorization: Bearer TOKEN"; ""
	// asks for none. The page itself holds no data and asks for the token.
	ReadToken string
	// WriteToken has to come with every request that changes something, and may read as well. It is
	// needed where WriteRules is set, and must differ from ReadToken.
	WriteToken string
	// WriteRules allows changing the rules that code has loaded (see api.Guard.LoadRules). Those
	// of files and stores are changed where they are.
	WriteRules bool

	// Hosts are further names, without a port, under which browsers may ask for the console: "localhost", "127.0.0.1",
	// "[::1]" and the host of Addr are always allowed. Under any other name it answers 403, so
	// that a page of another site can't make a browser ask under a name of its own.
	Hosts []string

	// Streams is how many clients of /api/events are served at the same time; 0 means 128. One
	// beyond gets 503.
	Streams int

	// Listening, if not nil, is called with the URL of the dashboard once it is served.
	Listening func(url string)
}

// The usual number of streams, and the most.
const (
	usualStreams = 128
	maxStreams   = 10_000
)

// minToken is the minimum length of a token: 16 characters that can't be guessed.
const minToken = 16

// withDefaults fills in the defaults, or says what can't be honoured.
func (c Config) withDefaults() (Config, error) {
	c.Addr = cmp.Or(c.Addr, DefaultAddr)
	c.Streams = cmp.Or(c.Streams, usualStreams)
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return c, fmt.Errorf("penstock: console: Config.Addr: %w", err)
	case c.Streams < 1 || c.Streams > maxStreams:
		return c, fmt.Errorf("penstock: console: Config.Streams is %d: use a number from 1 to %d, or 0 for %d", c.Streams, maxStreams, usualStreams)
	case c.WriteRules && c.WriteToken == "":
		return c, errors.New("penstock: console: Config.WriteRules needs a WriteToken")
	case c.WriteToken != "" && c.WriteToken == c.ReadToken:
		return c, errors.New("penstock: console: Config.WriteToken is the ReadToken: use two that differ")
	case !isLoopback(host) && !c.Insecure && (c.ReadToken == "" || c.TLS == nil):
		return c, fmt.Errorf("penstock: console: others can reach %s: set ReadToken and TLS, or Insecure", c.Addr)
	}
	for name, token := range map[string]string{"ReadToken": c.ReadToken, "WriteToken": c.WriteToken} {
		if token != "" && len(token) < minToken {
			return c, fmt.Errorf("penstock: console: Config.%s is shorter than %d characters", name, minToken)
		}
	}
	c.Hosts = append(slices.Clone(c.Hosts), "localhost", "127.0.0.1", "::1")
	if !isUnspecified(host) {
		c.Hosts = append(c.Hosts, host)
	}
	return c, nil
}

// isLoopback reports whether only programs of this machine reach a host. A name other than
// localhost may mean anything.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
