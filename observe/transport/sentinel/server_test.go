package sentinel

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// The program registers with a dashboard, which finds it at the reported address.
func TestListenAndServe(t *testing.T) {
	l := newLab(t, Config{})
	forms := make(chan url.Values, 100)
	dash := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.Equal(t, "/registry/machine", r.URL.Path) && assert.NoError(t, r.ParseForm()) {
			forms <- r.PostForm
		}
		_, _ = io.WriteString(w, `{"success":true,"code":0,"msg":"success","data":null}`)
	}))
	defer dash.Close()
	ctx, end := context.WithCancel(t.Context())
	listening := make(chan netip.AddrPort, 1)
	var served sync.WaitGroup
	served.Go(func() {
		assert.NoError(t, ListenAndServe(ctx, l.Guard, Config{
			App: "orders", Address: "127.0.0.1:0", Dashboards: []string{dash.URL + "/"}, Listening: func(at netip.AddrPort) { listening <- at },
		}))
	})
	at, form := <-listening, <-forms
	assert.Equal(t, "orders", form.Get("app"))
	assert.Equal(t, "0", form.Get("app_type"))
	assert.Equal(t, version, form.Get("v"))
	assert.Regexp(t, `^\d{13}$`, form.Get("version"))
	assert.Equal(t, "127.0.0.1", form.Get("ip"))
	assert.Equal(t, fmt.Sprint(at.Port()), form.Get("port"))
	assert.NotEmpty(t, form.Get("hostname"))

	status, body := dashboard{t, "http://" + net.JoinHostPort(form.Get("ip"), form.Get("port"))}.get("getSwitch")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "Sentinel switch value: true", body)
	end()
	served.Wait()
	_, err := net.Dial("tcp", at.String())
	assert.Error(t, err)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// If the port is taken, the next one is used, as by programs with Sentinel on one machine.
func TestPortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	at := netip.MustParseAddrPort(taken.Addr().String())
	if at.Port() > 65000 {
		t.Skip("the system gave a port that is too near the last one for another to follow")
	}
	l, err := listen(t.Context(), at)
	require.NoError(t, err)
	got := netip.MustParseAddrPort(l.Addr().String()).Port()
	require.NoError(t, l.Close())
	assert.Greater(t, got, at.Port())
	assert.Less(t, got, at.Port()+maxPorts)

	_, err = listen(t.Context(), netip.MustParseAddrPort("192.0.2.1:8720")) // nobody's address
	assert.Error(t, err)
	ctx, end := context.WithCancel(t.Context())
	end()
	_, err = listen(ctx, at)
	assert.Error(t, err)
}

// Half-sent forms don't block other requests, and only a few are read at a time.
func TestHalfSentForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer guard.Close()
		cfg := Config{App: "shop"}
		c, err := cfg.check()
		require.NoError(t, err)
		h := newHandler(guard, &c)
		ask := func(method string, body io.Reader) int {
			r := httptest.NewRequest(method, "http://127.0.0.1:8719/version", body)
			r.RemoteAddr, r.ContentLength = "127.0.0.1:1", 3
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		var sending []*io.PipeWriter
		codes := make(chan int, maxForms+2)
		for range maxForms + 2 {
			body, half := io.Pipe()
			sending = append(sending, half)
			go func() { codes <- ask("POST", body) }()
		}
		synctest.Wait()
		require.Len(t, codes, 2)
		assert.Equal(t, 503, <-codes)
		assert.Equal(t, 503, <-codes)
		assert.Equal(t, 200, ask("GET", nil))
		for _, half := range sending {
			go func() { // a refused one reads no more
				_, _ = io.WriteString(half, "a=b")
				_ = half.Close()
			}()
		}
		synctest.Wait()
		require.Len(t, codes, maxForms)
		for range maxForms {
			assert.Equal(t, 200, <-codes)
		}
		for _, half := range sending {
			_ = half.CloseWithError(io.EOF)
		}
	})
}

// Connections beyond the maximum wait, and are served as others end.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := newBounded(inner, 2)
	accepted := make(chan net.Conn)
	var accepting sync.WaitGroup
	var open atomic.Int32
	accepting.Go(func() {
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			assert.LessOrEqual(t, open.Add(1), int32(2))
			accepted <- c
		}
	})
	var clients []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		clients = append(clients, c)
	}
	for range 5 {
		c := <-accepted
		open.Add(-1) // before another can come
		require.NoError(t, c.Close())
		_ = c.Close() // a second Close gives nothing back
	}
	require.NoError(t, b.Close())
	_ = b.Close()
	accepting.Wait()
	for _, c := range clients {
		_ = c.Close()
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The program reports to a dashboard every ten seconds. A failure is logged once, and so is the
// next success.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Config{App: "orders", Dashboards: []string{"http://user:secret@dash"}}.check()
		require.NoError(t, err)
		var log record
		h := newHeart(&c, c.dashboards[0], netip.MustParseAddrPort("10.1.2.3:8720"), slog.New(slog.NewTextHandler(&log, nil)))
		begun := time.Now()
		var asked []time.Duration
		answers := []string{
			`{"success":true}`, "", "", `{"success":false,"msg":"invalid ip"}`, `{"success":true}`, "<html>", "moved", `{"code":0}`,
		}
		ctx, end := context.WithCancel(t.Context())
		h.client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			answer := answers[len(asked)]
			asked = append(asked, time.Since(begun))
			if len(asked) == len(answers) {
				defer end()
			}
			if answer == "" {
				return nil, io.ErrUnexpectedEOF
			}
			w := httptest.NewRecorder()
			if answer == "moved" {
				w.Header().Set("Location", "http://elsewhere")
				w.WriteHeader(http.StatusFound)
			}
			_, _ = io.WriteString(w, answer)
			return w.Result(), nil
		})
		h.beat(ctx)
		for i, at := range asked {
			assert.Equal(t, time.Duration(i)*heartPeriod, at)
		}
		assert.Len(t, asked, len(answers), "a redirection is not followed")
		text := log.text()
		assert.Equal(t, 2, strings.Count(text, "can't report to"), text)
		assert.Contains(t, text, "unexpected EOF")
		assert.Contains(t, text, "not a dashboard's")
		assert.GreaterOrEqual(t, strings.Count(text, "lists this program"), 1, text)
		assert.NotContains(t, text, "secret")
	})
}

// A program that listens at all addresses reports the address from which it reaches the dashboard.
func TestLocalAddress(t *testing.T) {
	ip, err := localTo(t.Context(), &url.URL{Scheme: "http", Host: "127.0.0.1:8080"})
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", ip)
	ip, err = localTo(t.Context(), &url.URL{Scheme: "http", Host: "127.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", ip)
}

// Rules of watched files can be read but not changed; other rules can.
func TestRulesOfFilesStay(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow:\n  - {resource: file, threshold: 9}\n"), 0o600))
	require.NoError(t, l.WatchRules(t.Context(), path))
	require.NoError(t, l.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "code", Threshold: 1}, {Resource: "hidden", Threshold: 5, Interval: time.Minute}}}))
	d := l.dashboard()
	_, list := d.get("getRules", "type", "flow")
	assert.Equal(t, 2, strings.Count(list, "resource\""), list)

	_, body := d.post("setRules", "type", "flow", "data", strings.Replace(list, `"count":1`, `"count":2`, 1))
	require.Equal(t, "success", body)
	assert.Equal(t, map[string]float64{"file": 9, "code": 2, "hidden": 5}, thresholds(l.Rules()))

	for _, data := range []string{"[]", strings.Replace(list, `"count":9`, `"count":10`, 1)} {
		status, body := d.post("setRules", "type", "flow", "data", data)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, `the flow rule "flow:file" is from `+path+", which can't be written from here: leave it unchanged", body)
	}
	assert.Equal(t, map[string]float64{"file": 9, "code": 2, "hidden": 5}, thresholds(l.Rules()))
	assert.Contains(t, l.log.text(), "API rejected")
}

func thresholds(set rules.Set) map[string]float64 {
	all := make(map[string]float64)
	for _, r := range set.Flow {
		all[r.Resource] = r.Threshold
	}
	return all
}

// With a store, rules are written to the store, and its watcher puts them in force.
func TestRulesAreWrittenToTheStore(t *testing.T) {
	for _, name := range []string{"rules.yaml", "rules.json"} {
		path := filepath.Join(t.TempDir(), name)
		file := rules.File{Path: path}
		l := newLab(t, Config{AllowRuleWrites: true, Store: file})
		d := l.dashboard()
		push := func(data string) (int, string) {
			return d.post("setRules", "type", "flow", "data", data)
		}
		_, body := push(`[{"resource":"a","count":1,"grade":1}]`)
		require.Equal(t, "success", body, "a file that isn't there yet")
		set, err := rules.Load(path)
		require.NoError(t, err)
		assert.Equal(t, map[string]float64{"a": 1}, thresholds(set))
		assert.Empty(t, l.Rules().Flow, "nobody watches it")

		require.NoError(t, l.LoadRulesFile(path))
		_, list := d.get("getRules", "type", "flow")
		_, body = push(strings.Replace(list, `"count":1`, `"count":5`, 1))
		require.Equal(t, "success", body)
		set, err = rules.Load(path)
		require.NoError(t, err)
		assert.Equal(t, map[string]float64{"a": 5}, thresholds(set))

		require.NoError(t, os.WriteFile(path, []byte(`{"dialect":"sentinel-java","flow":[]}`), 0o600))
		status, body := push("[]")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, body, "sentinel-java")
	}
}
