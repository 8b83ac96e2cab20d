// Package browser_test uses the dashboard of package console with a real browser.
package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/observe/console"
	"github.com/penstock-go/penstock/system"
)

var write = flag.String("write", "", "the folder for screenshots; none are made otherwise")

const writeToken = "the-write-token-of-the-tests"

// patience is the wait for an event that must occur; the limit of go test ends it earlier.
const patience = time.Hour

// session is a browser that shows the console of a guard.
type session struct {
	*testing.T
	guard *api.Guard
	url   string
	ctx   context.Context

	mu       sync.Mutex
	problems []string
}

// open starts a console of a guard, and a browser that shows it. At the end the browser must have
// reported no problem.
func open(t *testing.T, set api.RuleSet, cfg console.Config) *session {
	t.Helper()
	return openOf(t, api.Config{}, set, cfg)
}

// openOf is like open, but takes the configuration of the guard.
func openOf(t *testing.T, of api.Config, set api.RuleSet, cfg console.Config) *session {
	t.Helper()
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("NOT TESTED WITH A BROWSER: chromium is not installed (Debian: apt-get install chromium)")
	}
	s := &session{T: t}
	var err error
	of.Logger, of.Percentiles = slog.New(slog.DiscardHandler), true
	s.guard, err = api.New(of)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.guard.Close()) })
	require.NoError(t, s.guard.LoadRules(set))

	serving, stop := context.WithCancel(context.Background())
	urls, ended := make(chan string, 1), make(chan error, 1)
	cfg.Addr, cfg.Listening = "127.0.0.1:0", func(url string) { urls <- url }
	go func() { ended <- console.ListenAndServe(serving, s.guard, cfg) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	select {
	case s.url = <-urls:
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	}

	dir, err := os.MkdirTemp("", "chromium") //nolint:usetesting // late writes of the browser must not fail the test
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	allocator, endBrowser := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1200, 800))...)
	t.Cleanup(endBrowser)
	tab, endTab := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf)) // such as events too new for chromedp
	t.Cleanup(endTab)
	var end context.CancelFunc
	s.ctx, end = context.WithTimeout(tab, patience)
	t.Cleanup(end)
	chromedp.ListenTarget(s.ctx, s.listen)
	s.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`window.violations = [];
			addEventListener("securitypolicyviolation", e => violations.push(e.violatedDirective + " " + e.blockedURI), true);`).Do(ctx)
		return err
	}), log.Enable(), chromedp.Navigate(s.url))
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		var violations []string
		s.run(chromedp.Evaluate("violations", &violations))
		assert.Empty(t, violations, "the report of the page's policy")
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Empty(t, s.problems, "the browser's console")
	})
	return s
}

// listen records problems that the browser reports.
func (s *session) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			problem = fmt.Sprint("console.", e.Type)
			for _, arg := range e.Args {
				problem += " " + string(arg.Value)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if problem != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.problems = append(s.problems, problem)
	}
}

func (s *session) run(actions ...chromedp.Action) {
	s.Helper()
	require.NoError(s, chromedp.Run(s.ctx, actions...))
}

// until waits until an expression on the page is true. It polls from outside: the page's policy
// forbids evaluating text inside.
func (s *session) until(expression string) {
	s.Helper()
	for end := time.Now().Add(patience); ; {
		var done bool
		err := chromedp.Run(s.ctx, chromedp.Evaluate(expression, &done))
		if err == nil && done {
			return
		}
		if time.Now().After(end) {
			var text string
			_ = chromedp.Run(s.ctx, chromedp.Evaluate("document.body.innerText", &text))
			require.NoError(s, err)
			require.Fail(s, "the page doesn't come to "+expression, "it says:\n%.2000s", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// goTo opens a view.
func (s *session) goTo(hash string) {
	s.Helper()
	s.run(chromedp.Evaluate("location.hash = "+quote(hash), nil))
}

// shows waits until an element contains a text.
func (s *session) shows(selector, text string) {
	s.Helper()
	s.until(fmt.Sprintf("!!document.querySelector(%s)?.textContent.includes(%s)", quote(selector), quote(text)))
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // any string can be encoded
	}
	return string(data)
}

func (s *session) call(resource string, opts ...api.Option) error {
	e, err := s.guard.Entry(context.Background(), resource, opts...)
	e.Exit()
	return err
}

// every calls f repeatedly until the test ends.
func (s *session) every(pause time.Duration, f func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(pause):
				f()
			}
		}
	}()
	s.Cleanup(func() { close(quit); <-done })
}

// A block appears in the list without touching the page.
func TestABlockAppears(t *testing.T) {
	s := open(t, api.RuleSet{Flow: []flow.Rule{{ID: "few", Resource: "busy", Threshold: 20}}}, console.Config{})
	s.every(10*time.Millisecond, func() { _ = s.call("busy") })
	s.shows("#resources", "busy")
	s.until(`document.getElementById("state").textContent === "live"`)
	const name = "closed 0"
	set := s.guard.Rules()
	set.Flow = append(set.Flow, flow.Rule{ID: name, Resource: name, Threshold: 0})
	require.NoError(t, s.guard.LoadRules(set))
	require.ErrorIs(t, s.call(name), api.ErrBlocked)
	s.until(fmt.Sprintf(`[...document.querySelectorAll("#event-list li")].some(l => l.textContent.includes(%s))`, quote(name+" began to block: 1 ")))
	s.until(`[...document.querySelectorAll("#resources tbody tr")].some(tr => tr.textContent.includes("closed 0"))`)
	s.goTo("#/r/closed%200")
	s.shows("main", `flow rule "closed 0" blocked "closed 0"`) // its reason
}

// A limit is changed on the page, after its diff was shown, and traffic follows.
func TestALimitIsChanged(t *testing.T) {
	s := open(t, api.RuleSet{Flow: []flow.Rule{{ID: "few", Resource: "orders", Threshold: 0}}},
		console.Config{WriteToken: writeToken, WriteRules: true})
	s.every(20*time.Millisecond, func() { _ = s.call("orders") })
	s.goTo("#/r/orders")
	s.run(chromedp.WaitVisible(`button[aria-label="Change the rule few"]`))
	s.shows("[data-part=figures]", "block/s")
	s.run(
		chromedp.Click(`button[aria-label="Change the rule few"]`), chromedp.WaitVisible("#edit-text"),
		chromedp.SetValue("#edit-text", `{"id": "few", "resource": "orders", "threshold": 100000}`), chromedp.Click("#edit-show"),
		chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", writeToken), chromedp.Click("#token-dialog button[value=ok]"),
	)
	s.shows("#edit-diff", "threshold 0 -> 100000")
	assert.EqualValues(t, 0, s.guard.Rules().Flow[0].Threshold, "it was only shown")
	s.run(chromedp.Click("#edit-apply"), chromedp.WaitNotVisible("#edit-dialog"))
	s.until(`/limit\/s\s*100\.0k/.test(document.querySelector("[data-part=figures]").innerText)`)
	s.until(`/pass\/s\s*[1-9]/.test(document.querySelector("[data-part=figures]").innerText)`)
	assert.EqualValues(t, 100000, s.guard.Rules().Flow[0].Threshold)
	// The server replied 401 once, which the browser reports on its console.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = slices.DeleteFunc(s.problems, func(p string) bool { return strings.Contains(p, "401") })
}

// A resource's page has the units that its calls used, and explains calls with costs.
func TestUnitsOfAResource(t *testing.T) {
	s := open(t, api.RuleSet{Flow: []flow.Rule{{ID: "room", Resource: "chat", Unit: "tokens", Threshold: 1000, Interval: time.Hour}}}, console.Config{})
	e, err := s.guard.Entry(t.Context(), "chat", api.Cost("tokens", 900))
	require.NoError(t, err)
	e.Settle("tokens", 300)
	e.Exit()
	s.goTo("#/r/chat")
	s.shows("[data-part=figures]", "tokens in a minute300")
	s.shows("[data-part=figures]", "tokens refunded600")
	s.shows("[data-part=rules]", "30 %")
	s.run(chromedp.SetValue("form.ask input[name=costs]", "tokens=701"), chromedp.Click("form.ask button.main"))
	s.shows("form.ask + div", "refused by flow room")
}

// In addition to its chart, a resource's page shows percentiles, the hot values' fullness, refusals
// of shadow rules, and breaker changes.
func TestAResourcesPage(t *testing.T) {
	s := open(t, api.RuleSet{
		Flow:    []flow.Rule{{ID: "try", Resource: "orders", Threshold: 0, Mode: api.Shadow}},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 4, Interval: time.Hour}},
		Breaker: []breaker.Rule{{ID: "wary", Resource: "orders", MinCalls: 5, Recovery: time.Hour}},
	}, console.Config{})
	for i := range 5 {
		e, err := s.guard.Entry(t.Context(), "orders", api.Param("user", "ann"))
		if i < 4 {
			require.NoError(t, err)
		}
		e.Exit()
	}
	s.shows("#resources thead th.p95", "p95")
	s.until(`/(ms|s)$/.test(document.querySelector("#resources td.p95")?.textContent)`)
	s.goTo("#/r/orders")
	s.until(`["p50", "p95", "p99"].every(p => document.querySelector("[data-part=figures]").innerText.includes(p))`)
	s.shows("[data-part=hot]", "100 % (4 of 4, units in 1h0m0s)")
	s.shows("[data-part=rules]", "4 would have been")
	for range 5 {
		e, err := s.guard.Entry(t.Context(), "orders")
		if err == nil {
			e.Fail(errors.New("no"))
			e.Exit()
		}
	}
	s.shows("[data-part=breakers] ol", "closed → open: share of failed calls in 10s: ")
	s.shows("[data-part=breakers] table", " bad of ")
	s.until(`document.querySelector("[data-part=breakers] .bar i.open") !== null`)
	s.goTo("#/breakers")
	s.shows("[data-part=changes]", "closed → open")
	s.goTo("#/rules")
	s.shows("[data-part=rules]", "users")
	s.until(`[...document.querySelectorAll("[data-part=rules] tbody tr")].some(r => r.innerText.includes("users") && r.innerText.includes("100 %"))`)
	s.shows("[data-part=sources]", "code")
}

// Only rules with a shared limit are marked while the store is unreachable.
func TestAStoreThatIsAway(t *testing.T) {
	shared := cluster.Rule{Scope: cluster.Global}
	s := openOf(t, api.Config{Cluster: cluster.Config{Store: away{}}}, api.RuleSet{
		Flow:    []flow.Rule{{ID: "shared", Resource: "orders", Threshold: 1e6, Cluster: shared}, {ID: "alone", Resource: "orders", Threshold: 1e6}},
		Hotspot: []hotspot.Rule{{ID: "each", Resource: "orders", Param: "user", Threshold: 1e6, Cluster: shared}},
	}, console.Config{})
	s.every(5*time.Millisecond, func() { _ = s.call("orders", api.Param("user", "ann")) })
	for _, page := range []string{"#/", "#/tree", "#/breakers", "#/explain"} {
		s.goTo(page)
		s.shows("#alerts", "The store of shared limits is unreachable: 2 rules")
	}
	for _, page := range []string{"#/rules", "#/r/orders"} {
		s.goTo(page)
		s.until(`[...document.querySelectorAll("[data-part=rules] tbody tr")].map(r => r.innerText.includes("store away")).sort().join() === "false,true,true"`)
	}
}

// The list keeps a hundred events, with room for their numbers.
func TestNumbersOfEventsHaveRoom(t *testing.T) {
	s := open(t, api.RuleSet{}, console.Config{})
	s.until(`(() => {
		const style = getComputedStyle(document.getElementById("event-list")), pen = document.createElement("canvas").getContext("2d");
		pen.font = style.font;
		return parseFloat(style.paddingLeft) > pen.measureText("100. ").width;
	})()`)
}

// A failed source is shown on every page, escaped, until it recovers. Explain assumes an inbound call,
// and reports that.
func TestASourceThatFails(t *testing.T) {
	s := open(t, api.RuleSet{System: []system.Rule{{ID: "none", Metric: system.Concurrency, Threshold: 0}}}, console.Config{})
	path := filepath.Join(t.TempDir(), "<b>rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: []"), 0o600))
	require.NoError(t, s.guard.WatchRules(t.Context(), path))
	s.goTo("#/tree")
	s.until(`document.getElementById("alerts").textContent === ""`)
	require.NoError(t, os.WriteFile(path, []byte("flow: [{resource: a, treshold: 1}]"), 0o600))
	s.shows("#alerts", "<b>rules.yaml – the source could not be loaded; its last good rules stay")
	s.shows("#alerts", "treshold: unknown field")
	s.goTo("#/explain")
	s.shows("#alerts", "treshold")
	s.run(chromedp.SendKeys("form.ask input[name=resource]", "orders"), chromedp.Click("form.ask button"))
	s.shows("main", "refused by system none")
	s.shows("main", "Assumed about the call: not prioritized, no caller")
	require.NoError(t, os.WriteFile(path, []byte("flow: [{resource: a, threshold: 1}]"), 0o600))
	s.until(`document.getElementById("alerts").textContent === ""`)
}

// away is a store that never responds.
type away struct{}

func (away) Do(ctx context.Context, _ []store.Command) { <-ctx.Done() }
func (away) Shard(string) int                          { return 0 }

var hostile = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", `"><svg onload=alert(1)>`, "javascript:alert(1)", "{{7*7}}${7*7}",
	"a\u202egnp.exe", "line\nbreak\x00\x1b[31m", "../../etc", "..", "?q=1#x", "%2e%2e%2f", "\u2028", strings.Repeat("long", 200), "日本語", "' OR 1=1 --",
}

// A thousand resources, some with markup in their names, are all listed, found by typing, and opened.
// Names stay text.
func TestManyResourcesAndHostileNames(t *testing.T) {
	s := open(t, api.RuleSet{}, console.Config{})
	const many = 1000
	for i := range many {
		require.NoError(t, s.call(fmt.Sprintf("GET /items/%04d", i)))
	}
	for _, name := range hostile {
		require.NoError(t, s.call(name, api.Inbound()))
		e, err := s.guard.Entry(api.WithOrigin(api.WithContext(t.Context(), name), name), name)
		require.NoError(t, err)
		e.Exit()
	}
	random := chance.Source(t)
	s.every(time.Millisecond, func() { _ = s.call(fmt.Sprintf("GET /items/%04d", random.IntN(many))) })
	s.until(fmt.Sprintf(`document.querySelectorAll("#resources tbody tr").length === %d`, many+len(hostile)))
	s.until(`document.querySelectorAll("#resources .uplot").length > 10`)
	var charts int
	s.run(chromedp.Evaluate(`document.querySelectorAll("#resources .uplot").length`, &charts))
	assert.Less(t, charts, 300, "only visible charts are drawn")

	s.run(chromedp.SendKeys("#search", "items/0777"))
	s.until(`document.querySelectorAll("#resources tbody tr").length === 1`)
	s.run(chromedp.SendKeys("#search", "\r"))
	s.shows("h1", "GET /items/0777")

	for _, name := range hostile {
		s.run(chromedp.Evaluate("location.hash = '#/r/' + encodeURIComponent("+quote(name)+")", nil))
		s.until(`document.querySelector("[data-part=origins] td") !== null`)
		var heading string
		s.run(chromedp.Evaluate(`document.querySelector("h1").textContent`, &heading))
		if !strings.ContainsAny(name, "\u202e\n\x00\x1b\u2028") {
			assert.Equal(t, name, heading)
		} else {
			assert.Contains(t, heading, `\u`, "%q", name)
		}
	}
	for _, hash := range []string{"#/tree", "#/rules", "#/breakers", "#/explain", "#/"} {
		s.goTo(hash)
		s.until(`document.querySelector("nav a[aria-current]")?.getAttribute("href") === ` + quote(hash))
		s.until(`document.querySelector("main").innerText.length > 20`)
	}
	var markup int
	s.run(chromedp.Evaluate(`document.querySelectorAll("main script, main img, main svg, main iframe").length`, &markup))
	assert.Zero(t, markup)
}

// Everything can be reached by keyboard, and has a name for screen readers.
func TestKeyboardAndNames(t *testing.T) {
	s := open(t, api.RuleSet{}, console.Config{})
	for _, name := range []string{"alpha", "beta"} {
		require.NoError(t, s.call(name))
	}
	s.until(`document.querySelectorAll("#resources tbody tr").length === 2`)
	s.run(chromedp.KeyEvent("/"))
	s.until(`document.activeElement.id === "search"`)
	s.run(chromedp.Evaluate(`document.getElementById("search").value = ""`, nil), chromedp.KeyEvent("beta\r")) // DevTools type the slash though the page handles it
	s.shows("h1", "beta")
	s.run(chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("\x1b"))
	s.until(`location.hash === "#/"`)
	for key, hash := range map[string]string{"2": "#/tree", "3": "#/rules", "4": "#/breakers", "5": "#/explain", "1": "#/"} {
		s.run(chromedp.KeyEvent(key))
		s.until("location.hash === " + quote(hash))
	}
	s.goTo("#/")
	var unnamed []string
	s.run(chromedp.Evaluate(`[...document.querySelectorAll("button, a, input:not([type=hidden]), textarea")].filter(e => e.offsetParent &&
		!(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map(e => e.outerHTML)`, &unnamed))
	assert.Empty(t, unnamed)
	for _, selector := range []string{"main", "nav[aria-label]", "[aria-live]", "html[lang]", "a.skip", "table caption", "th[scope=col]"} {
		s.until("document.querySelector(" + quote(selector) + ") !== null")
	}
}

// quickstart runs the example, and returns the URL of its dashboard.
func quickstart(t *testing.T) (url string) {
	program := filepath.Join(t.TempDir(), "quickstart")
	build := exec.Command("go", "build", "-o", program, "./examples/quickstart")
	build.Dir = "../../.."
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	run := exec.Command(program, "-serve")
	run.Dir = build.Dir
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	lines := bufio.NewScanner(out)
	found := false
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if found && line != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // so that it doesn't wait for a reader
			return line
		}
		found = found || strings.HasSuffix(line, "The dashboard is at")
	}
	require.Fail(t, "the quickstart doesn't say where its dashboard is")
	return ""
}

// TestScreenshots makes the pictures of the documentation:
//
//	make screenshots
func TestScreenshots(t *testing.T) {
	if *write == "" {
		t.Skip("makes pictures where -write says: make screenshots")
	}
	url := quickstart(t) // ends after the browser
	s := open(t, api.RuleSet{}, console.Config{})
	s.url = url
	s.run(chromedp.Navigate(s.url))
	s.shows("#resources", "GET /orders/{id}")
	time.Sleep(65 * time.Second) // fills the whole history
	for _, shot := range []struct {
		name, hash, scheme string
		width, height      int64
	}{
		{"console-light", "#/", "light", 1200, 640},
		{"console-list-dark", "#/", "dark", 1200, 640},
		{"console-dark", "#/r/" + "GET%20%2Forders%2F%7Bid%7D", "dark", 1200, 1100},
		{"console-narrow", "#/", "light", 390, 760},
	} {
		var picture []byte
		s.run(
			emulation.SetDeviceMetricsOverride(shot.width, shot.height, 1, shot.width < 500),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: shot.scheme}}),
			chromedp.Navigate(s.url+"/"), chromedp.Evaluate("location.hash = "+quote(shot.hash), nil),
			chromedp.Sleep(3*time.Second), chromedp.CaptureScreenshot(&picture),
		)
		require.NoError(t, os.WriteFile(filepath.Join(*write, shot.name+".png"), picture, 0o644))
	}
}
