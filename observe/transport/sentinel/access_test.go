package sentinel

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The test sends every command, with every method, from inside and outside of AllowFrom, with writes
// allowed or not, from a web page or not, under known and unknown names. It checks which requests are
// served, and whether anything changes. known bug 166
func TestAccess(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::/32")}
	origins := []struct {
		remote string
		inside bool
	}{
		{"10.1.2.3:5000", true}, {"[::ffff:10.1.2.3]:5000", true}, {"[2001:db8::7]:5000", true}, {"[2001:db8::7%eth0]:5000", true},
		{"10.2.0.1:5000", false}, {"127.0.0.1:5000", false}, {"@", false},
	}
	hosts := []struct {
		host  string
		known bool
	}{
		{"10.9.9.9:8720", true}, {"[2001:db8::1]:8720", true}, {"localhost", true}, {"Orders.internal:8720", true},
		{"evil.example", false}, {"evil.example:8720", false}, {"10.9.9.9.evil.example", false}, {"orders.internal.", false}, {"", false},
	}
	pages := []struct {
		name, value string
		foreign     bool
	}{
		{"", "", false}, {"Sec-Fetch-Site", "same-origin", false}, {"Sec-Fetch-Site", "none", false},
		{"Sec-Fetch-Site", "cross-site", true}, {"Origin", "http://evil.example", true}, {"Origin", "null", true},
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"}
	writes := map[string]string{
		"setRules":          `type=flow&data=[{"resource":"a","count":2,"grade":1}]`,
		"setParamFlowRules": `data=[{"resource":"a","count":2,"grade":1,"paramIdx":0}]`,
	}
	asked := 0
	for _, allowed := range []bool{false, true} {
		l := newLab(t, Config{AllowFrom: allow, AllowRuleWrites: allowed, Hosts: []string{"orders.internal"}})
		require.NoError(t, l.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "a", Threshold: 1}}}))
		for _, c := range l.commands {
			form, isWrite := writes[c.name]
			require.Equal(t, c.writes, isWrite, "%s: a command that writes needs a row here", c.name)
			for _, method := range methods {
				for _, o := range origins {
					for _, h := range hosts {
						for _, p := range pages {
							before := l.Rules()
							r := httptest.NewRequest(method, "/"+c.name, strings.NewReader("startTime=1&id=a&"+form))
							r.URL.RawQuery, r.RemoteAddr, r.Host = form, o.remote, h.host
							if !c.writes {
								r.URL.RawQuery = "startTime=1&id=a&type=flow"
							}
							r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
							r.Header.Set("X-Forwarded-For", "10.1.2.3")
							if p.name != "" {
								r.Header.Set(p.name, p.value)
							}
							w := httptest.NewRecorder()
							l.ServeHTTP(w, r)
							asked++

							want := http.StatusOK
							reads := !c.writes && (method == "GET" || method == "HEAD")
							switch {
							case !o.inside || !h.known, method == "POST" && p.foreign:
								want = http.StatusForbidden
							case !reads && method != "POST":
								want = http.StatusMethodNotAllowed
							case c.writes && !allowed:
								want = http.StatusForbidden
							}
							if !assert.Equal(t, want, w.Code, "%s %s from %q as %q, %s: %s, writes %v: %s", method, c.name, o.remote, h.host, p.name, p.value, allowed, w.Body) {
								return
							}
							changed := !assert.ObjectsAreEqual(before, l.Rules())
							require.Equal(t, c.writes && want == http.StatusOK, changed, "%s %s", method, c.name)
							if changed {
								require.NoError(t, l.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "a", Threshold: 1}}}))
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests", asked)
}

// This is Sentinel's response to a POST that is not a form.
func TestForms(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	ask := func(kind, body string, length int64) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/setRules", strings.NewReader(body))
		r.RemoteAddr, r.Host, r.ContentLength = "127.0.0.1:5000", "127.0.0.1", length
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r)
		return w
	}
	const good = "type=flow&data=%5B%5D"
	for _, c := range []struct {
		kind, body string
		length     int64
		status     int
		answer     string
	}{
		{"application/x-www-form-urlencoded", good, int64(len(good)), 200, "success"},
		{"application/x-www-form-urlencoded; charset=UTF-8", good, int64(len(good)), 200, "success"},
		{"", good, int64(len(good)), 200, "success"},
		{"application/json", "[]", 2, 415, "Only form-encoded post request is supported"},
		{"multipart/form-data; boundary=x", "--x--", 5, 415, "Only form-encoded post request is supported"},
		{"application/x-www-form-urlencoded;;", good, int64(len(good)), 415, "Only form-encoded post request is supported"},
		{"application/x-www-form-urlencoded", "", 0, 411, "No legal Content-Length"},
		{"application/x-www-form-urlencoded", good, -1, 411, "No legal Content-Length"},
		{"application/x-www-form-urlencoded", "type=flow&data=%zz", 18, 400, "the form can't be read"},
		{"application/x-www-form-urlencoded", "data=" + strings.Repeat("x", maxForm), maxForm + 5, 413, "the form is longer than 3145728 bytes"},
	} {
		w := ask(c.kind, c.body, c.length)
		assert.Equal(t, c.status, w.Code, c.kind)
		assert.Equal(t, c.answer, w.Body.String())
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
}

func TestConfig(t *testing.T) {
	any4 := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	for _, c := range []struct {
		cfg  Config
		want string // an address, or part of the error
	}{
		{Config{}, "127.0.0.1:8720"},
		{Config{Address: "127.0.0.1"}, "127.0.0.1:8720"},
		{Config{Address: "[::1]:9000"}, "[::1]:9000"},
		{Config{Address: "localhost:0"}, "127.0.0.1:0"},
		{Config{Address: "0.0.0.0:8719", AllowFrom: any4}, "0.0.0.0:8719"},
		{Config{Address: ":8719", AllowFrom: any4}, "[::]:8719"},
		{Config{Address: "0.0.0.0:8719"}, "AllowFrom"},
		{Config{Address: ":8719"}, "AllowFrom"},
		{Config{Address: "10.0.0.1:8719"}, "AllowFrom"},
		{Config{Address: "somewhere:8719"}, "use an IP address"},
		{Config{Address: "127.0.0.1:70000"}, "port"},
		{Config{AllowFrom: make([]netip.Prefix, 1)}, "AllowFrom"},
		{Config{Store: nowhere{}}, "AllowRuleWrites"},
		{Config{Dashboards: []string{"http://dash"}}, "App is required"},
		{Config{App: "a", Dashboards: []string{"dash:8080"}}, "Dashboards"},
		{Config{App: "a", Dashboards: []string{"ftp://user:secret@dash"}}, "Dashboards"},
		{Config{App: strings.Repeat("x", 257)}, "the maximum is 256"},
		{Config{IP: "orders.internal"}, "use an IP address such as"},
	} {
		full, err := c.cfg.check()
		if err != nil {
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "secret")
			continue
		}
		assert.Equal(t, c.want, full.at.String())
	}
}

// An IPv4 network may be written with IPv4-mapped addresses.
func TestMappedNetworks(t *testing.T) {
	full, err := (&Config{AllowFrom: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}).check()
	require.NoError(t, err)
	for remote, want := range map[string]bool{"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "11.1.2.3:80": false, "[::1]:80": false} {
		assert.Equal(t, want, full.allows(remote), remote)
	}
}

type nowhere struct{ Store }
