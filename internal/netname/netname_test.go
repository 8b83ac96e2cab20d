package netname_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/netname"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.7":              "203.0.113.7",
		"203.0.113.7:4711":         "203.0.113.7",
		" 203.0.113.7:4711 ":       "203.0.113.7",
		"203.0.113.7:":             "203.0.113.7",
		"2001:db8::1":              "2001:db8::1",
		"2001:DB8:0:0::1":          "2001:db8::1",
		"[2001:db8::1]":            "2001:db8::1",
		"[2001:db8::1]:443":        "2001:db8::1",
		"fe80::1%eth0":             "fe80::1",
		"[fe80::1%eth0]:80":        "fe80::1",
		"[fe80::1%25eth0]":         "fe80::1",
		"::ffff:203.0.113.7":       "203.0.113.7",
		"[::ffff:203.0.113.7]":     "203.0.113.7",
		"[::ffff:203.0.113.7]:443": "203.0.113.7",
		"::ffff:cb00:7107":         "203.0.113.7",

		"": "", "@": "", "unix:": "", "/run/x.sock": "", "unknown": "", "_hidden": "", "localhost:80": "", "a.test": "",
		"203.0.113": "", "203.0.113.7.1": "", "0203.0.113.7": "", "[2001:db8::1": "", "2001:db8::1]": "", "[]": "", "[": "", ":80": "",
		"203.0.113.7, 203.0.113.8": "", "203.0.113.7/8": "", "[203.0.113.7]x": "",
	} {
		got, ok := netname.Address(text)
		assert.Equal(t, want != "", ok, "%q", text)
		if ok {
			assert.Equal(t, want, got.String(), "%q", text)
		}
	}
}

func TestNetworks(t *testing.T) {
	for network, has := range map[string]string{
		"10.0.0.0/8":           "10.1.2.3",
		"::ffff:10.0.0.0/104":  "10.1.2.3",
		"::ffff:10.1.2.3/128":  "10.1.2.3",
		"::ffff:0.0.0.0/96":    "10.1.2.3",
		"2001:db8::/32":        "2001:db8::1",
		"::ffff:10.9.9.9/104":  "10.1.2.3",
		"2001:db8::ffff:0/128": "2001:db8::ffff:0",
	} {
		p := []netip.Prefix{netip.MustParsePrefix(network)}
		assert.True(t, netname.Contains(netname.Networks(p), netip.MustParseAddr(has)), network)
		assert.False(t, netname.Contains(netname.Networks(p), netip.MustParseAddr("2001:db9::1")), network)
	}
	assert.False(t, netname.Contains(netname.Networks([]netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}), netip.MustParseAddr("11.0.0.1")))
	assert.False(t, netname.Contains(netname.Networks([]netip.Prefix{{}}), netip.MustParseAddr("10.0.0.1")), "the zero prefix")
}

// HostOf leaves out only the scheme's default port.
func TestHostOf(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"http", "A.test:80"}: "a.test", {"http", "a.test:443"}: "a.test:443", {"https", "a.test.:443"}: "a.test", {"https", "a.test:80"}: "a.test:80",
		{"http", "a.test:8080"}: "a.test:8080", {"http", "a.test.:8080"}: "a.test:8080", {"ws", "a.test:80"}: "a.test", {"wss", "a.test:0443"}: "a.test",
		{"", "a.test:80"}: "a.test:80", {"unix", "A.test"}: "a.test", {"http", "[2001:DB8::1]:80"}: "[2001:db8::1]", {"http", "a.test:"}: "a.test",
	} {
		assert.Equal(t, want, netname.HostOf(in[0], in[1]), "%v", in)
	}
	for _, host := range []string{"api.example.com", "localhost:8080", "10.0.0.1:9000", "a_b.test"} {
		assert.Zero(t, testing.AllocsPerRun(10, func() { netname.HostOf("http", host) }), host)
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]string{
		"localhost": "localhost", "LOCALHOST": "localhost", "localhost.": "localhost", "localhost:80": "localhost",
		"LocalHost.:443": "localhost", "localhost:": "localhost", "localhost:080": "localhost", "localhost:8080": "localhost:8080",
		"LOCALHOST:08080": "localhost:8080", "a.test..": "a.test",
		"[2001:DB8::1]": "[2001:db8::1]", "[2001:db8:0:0::1]:443": "[2001:db8::1]", "[::1]:8443": "[::1]:8443",
		"2001:db8::80": "2001:db8::80", "2001:DB8::80": "2001:db8::80",
		"127.0.0.1:80": "127.0.0.1", "BÜCHER.test": "bücher.test",
		"": "", ".": ".", ":80": "", "[": "[", "]": "]", "a:b": "a:b",
	} {
		assert.Equal(t, want, netname.Host(host), "%q", host)
		assert.Equal(t, want, netname.Host(want), "%q again", host)
	}
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"LOCALHOST.:080", "[::1]:443", "a:b:c", "x.:80.:443"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		once := netname.Host(host)
		assert.Equal(t, once, netname.Host(once), "%q", host)
	})
}
