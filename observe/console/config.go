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

// DefaultAddr is the default address of the console.
const DefaultAddr = "127.0.0.1:8719"

// Config defines where the console listens, who may read and who may change rules. The zero value
// suits a developer's own machine: loopback, no tokens, nothing can be changed.
type Config struct {
	// Addr is the address to listen on; "" means [DefaultAddr]. Port 0 takes a free one. An address
	// that other machines can reach needs ReadToken and TLS, or Insecure.
	Addr string
	// TLS is the configuration with the certificate for HTTPS; nil means HTTP.
	TLS *tls.Config
	// Insecure allows an address that other machines can reach without ReadToken or TLS. They can
	// then see names of resources and callers, traffic and rules, and may intercept tokens in
	// transit.
	Insecure bool

	// ReadToken is required in every request for data, as "Authorization: Bearer TOKEN"; ""
	// requires none. The page itself has no data and asks for the token.
	ReadToken string
	// WriteToken is required in every request that changes something, and allows reading as well.
	// It is required by WriteRules, and must differ from ReadToken.
	WriteToken string
	// WriteRules allows changing the rules that code has loaded (see api.Guard.LoadRules). Change
	// rules of files and stores in the file or the store.
	WriteRules bool

	// Hosts are further names, without a port, under which browsers may reach the console:
	// "localhost", "127.0.0.1", "[::1]" and the host of Addr are always allowed. Under any other
	// name it replies 403, so that a page of another site can't make a browser send requests under
	// its own name.
	Hosts []string

	// Streams is the maximum number of concurrent clients of /api/events; 0 means 128. Further
	// clients get 503.
	Streams int

	// Listening, if not nil, is called with the URL of the dashboard once it is served.
	Listening func(url string)
}

// The default and the maximum number of streams.
const (
	usualStreams = 128
	maxStreams   = 10_000
)

// minToken is the minimum length of a token: 16 characters that can't be guessed.
const minToken = 16

// withDefaults fills in the defaults, and returns an error for an invalid field.
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
		return c, errors.New("penstock: console: Config.WriteToken equals ReadToken: use different tokens")
	case !isLoopback(host) && !c.Insecure && (c.ReadToken == "" || c.TLS == nil):
		return c, fmt.Errorf("penstock: console: other machines can reach %s: set ReadToken and TLS, or Insecure", c.Addr)
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

// isLoopback reports whether only programs on this machine can reach a host. A name other than
// localhost may resolve to anything.
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
