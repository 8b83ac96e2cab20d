package inspect_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/observe/inspect"
)

// shop is an engine with the traffic of the examples below.
func shop(t *testing.T) *lab {
	l := newLab(t, engine.Config{})
	l.rules(flow.Rule{Resource: "GET /orders", Threshold: 98})
	orders := l.enter(from("http", "app"), "GET /orders")
	l.call(orders.Context(), 20, 1200*time.Microsecond, "sql orders.select")
	open := l.enter(orders.Context(), "sql orders.select")
	orders.Exit()
	l.call(from("http", "app"), 96, 500*time.Microsecond, "GET /orders", engine.Inbound())
	pending := l.enter(from("http", ""), "GET /orders")
	l.blocked(from("http", "app"), 12, "GET /orders")
	l.call(from("jobs", ""), 2, 0, "sql orders.select")
	l.clock.Advance(time.Millisecond)
	t.Cleanup(func() { open.Exit(); pending.Exit() })
	return l
}

func TestTextOfATree(t *testing.T) {
	l := shop(t)
	require.Equal(t, `                            last second         last minute             in
machine-root                pass  block     rt  pass  block     rt  flight
├─ http                       98     12  742µs    98     12  742µs       1
│  └─ GET /orders             98     12  742µs    98     12  742µs       1
│     └─ sql orders.select    21      0  1.2ms    21      0  1.2ms       1
└─ jobs                        2      0    0ms     2      0    0ms       0
   └─ sql orders.select        2      0    0ms     2      0    0ms       0

flow rule flow:GET /orders: refused 12 calls
`, text(t, l.tree()))

	l.clock.Advance(time.Second)
	l.call(from("jobs", ""), 3, 5*time.Millisecond, "sql orders.select")
	require.Equal(t, `                            last second       last minute             in
machine-root                pass  block   rt  pass  block     rt  flight
├─ http                        0      0    -    98     12  742µs       1
│  └─ GET /orders              0      0    -    98     12  742µs       1
│     └─ sql orders.select     0      0    -    21      0  1.2ms       1
└─ jobs                        3      0  5ms     5      0    3ms       0
   └─ sql orders.select        3      0  5ms     5      0    3ms       0

flow rule flow:GET /orders: refused 12 calls
`, text(t, l.tree()))
}

// One call a minute is always visible.
func TestTextShowsLowTraffic(t *testing.T) {
	l := newLab(t, engine.Config{})
	for range 3 {
		l.call(anywhere, 1, 0, "report")
		for range 59 {
			l.clock.Advance(time.Second)
			require.Regexp(t, `(?m)─ report( +\S+){3} +1 +0 +0ms +0$`, text(t, l.tree()))
		}
		l.clock.Advance(time.Second)
	}
}

// The ten rules with the most refusals are named, the others counted.
func TestTextSaysWhichRulesRefused(t *testing.T) {
	l := newLab(t, engine.Config{})
	var all []flow.Rule
	for i := range 12 {
		all = append(all, flow.Rule{ID: fmt.Sprint(i), Resource: fmt.Sprint("name ", i), Threshold: 0})
	}
	l.rules(all...)
	var want strings.Builder
	for i := range 12 {
		l.blocked(anywhere, i+1, fmt.Sprint("name ", i))
	}
	for i := 11; i > 1; i-- {
		fmt.Fprintf(&want, "flow rule %d: refused %d calls\n", i, i+1)
	}
	require.Contains(t, text(t, l.tree()), "\n\n"+want.String()+"rules that refused calls: 2 more\n")
}

func TestTextOfAnEngineThatWasNeverUsed(t *testing.T) {
	require.Equal(t, "machine-root\n", text(t, newLab(t, engine.Config{}).tree()))
	require.Equal(t, "\n", text(t, inspect.Tree{}))
}

func TestTextSaysWhatNeedsAttention(t *testing.T) {
	tree := newLab(t, engine.Config{}).tree()
	tree.Waiting, tree.Failures = 3, 7
	tree.Caps.Origins = inspect.Usage{Used: 10, Cap: 10, Overflows: 4}
	tree.Caps.Contexts = inspect.Usage{Used: 5, Cap: 5} // full, but no name was turned away
	require.Equal(t, `machine-root

waiting calls: 3
slot panics: 7; each call went on without that slot
origins: 10 of 10; 4 times a name found no place and went to (overflow)
`, text(t, tree))
}

func TestTextTellsOfSlotsThatPanic(t *testing.T) {
	l := newLab(t, engine.Config{Chain: withBroken()})
	l.call(anywhere, 2, 0, "orders")
	require.Contains(t, text(t, l.tree()), "\nslot panics: 2; ")
}

// hostile holds names that would break a line, a terminal, or a table.
var hostile = map[string]string{
	"line\nfeed":                           `line\nfeed`,
	"carriage\rreturn":                     `carriage\rreturn`,
	"tab\tstop":                            `tab\tstop`,
	"\x1b[31mred\x1b[0m":                   `\x1b[31mred\x1b[0m`,
	"nul\x00":                              `nul\x00`,
	"line\u2028separator":                  `line\u2028separator`,
	"right\u202eleft":                      `right\u202eleft`,
	"\xff not UTF-8":                       `\xff not UTF-8`,
	`back\slash`:                           `back\\slash`,
	`"quoted"`:                             `"quoted"`,
	"订单 查询":                                "订单 查询",
	"café":                                 "café",
	strings.Repeat("x", pattern.MaxName):   strings.Repeat("x", 23) + "…",
	strings.Repeat("订", pattern.MaxName/3): strings.Repeat("订", 11) + "…",
}

func TestANameIsOneLineWhateverItHolds(t *testing.T) {
	for name, want := range hostile {
		l := newLab(t, engine.Config{})
		l.call(from("web", ""), 1, 0, name)
		lines := strings.Split(text(t, l.tree()), "\n")
		require.Len(t, lines, 5, "%.30q", name)
		figures := regexp.MustCompile(` {5,}1 {6}0  0ms {5}1 {6}0  0ms {7}0$`)
		require.Regexp(t, figures, lines[3])
		label := strings.TrimPrefix(figures.ReplaceAllString(lines[3], ""), "   └─ ")
		require.Equal(t, want, label)

		lines = strings.Split(sentinel(t, l.tree()), "\n")
		require.Contains(t, lines[3], "(t:0 pq:1.0 ")
		require.Less(t, len(lines[3]), 1500)
		require.True(t, utf8.ValidString(lines[3]))
		require.Equal(t, "\r", lines[4], "the legend begins")
	}
}

// Calls nested five deep fit in 80 columns, regardless of their names and counts.
func TestOrdinaryNamesFitAnOrdinaryTerminal(t *testing.T) {
	l := newLab(t, engine.Config{})
	ctx := from("http", "")
	for i := range 4 {
		name := "POST /warehouses/{id}/shelves/{shelf}/items" + strings.Repeat("!", i)
		e := l.enter(ctx, name, engine.Units(1<<20))
		defer e.Exit()
		l.call(e.Context(), 800, 0, name+"/1", engine.Units(1<<20))
		ctx = e.Context()
	}
	l.call(ctx, 1, 123456*time.Microsecond, "sql")
	lines := strings.Split(text(t, l.tree()), "\n")
	require.Len(t, lines, 2+1+4+4+1+1)
	for _, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

func TestFiguresAreShort(t *testing.T) {
	for _, c := range []struct {
		interval    time.Duration
		calls       int
		took        time.Duration
		since, want string
	}{
		{time.Second, 1, 0, "last second", "1 0 0ms"},
		{time.Second, 12345, 0, "last second", "12345 0 0ms"},
		{2 * time.Second, 1, 999 * time.Nanosecond, "last 2s", "1 0 999ns"},
		{2 * time.Second, 39, 1500 * time.Nanosecond, "last 2s", "39 0 1.5µs"},
		{100 * time.Millisecond, 7, 0, "last 100ms", "7 0 0ms"},
		{time.Minute, 1, 12345 * time.Microsecond, "last 60s", "1 0 12ms"},
		{time.Minute, 1, 9_960 * time.Microsecond, "last 60s", "1 0 10ms"},
		{time.Minute, 1, 2 * time.Second, "last 60s", "1 0 2s"},
		{time.Minute, 1, 40 * time.Second, "last 60s", "1 0 40s"},
	} {
		l := newLab(t, engine.Config{Interval: c.interval})
		l.call(anywhere, c.calls, c.took, "orders")
		lines := strings.Split(text(t, l.tree()), "\n")
		require.Regexp(t, `^ +`+c.since+` +last minute +in$`, lines[0])
		want := "└─ orders " + c.want + " " + c.want + " 0"
		require.Equal(t, want, strings.Join(strings.Fields(lines[3]), " "), "two spans, and none extrapolated")
	}
}

func TestCountsHaveFiveColumnsAtMost(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 99_999: "99999", 100_000: "100k", 123_499: "123k", 999_999: "1000k", 1_000_000: "1M",
		1_250_000: "1.2M", 12_345_678: "12M", 5_000_000_000: "5G", math.MaxInt64: "9.2E", -1: "-1",
	} {
		require.Equal(t, want, string(shown.AppendCount(nil, n)))
	}
}

func TestNothingCompletedIsNoResponseTime(t *testing.T) {
	l := newLab(t, engine.Config{})
	defer l.enter(anywhere, "orders").Exit()
	require.Regexp(t, `orders +1 +0 +- +1 +0 +- +1\n`, text(t, l.tree()))
}

func TestSentinelText(t *testing.T) {
	require.Equal(t, `EntranceNode: machine-root(t:1 pq:100.0 bq:12.0 tq:112.0 rt:0.7272727272727273 prq:99.0 1mp:100 1mb:12 1mt:112)
-EntranceNode: sentinel_default_context(t:0 pq:0.0 bq:0.0 tq:0.0 rt:0.0 prq:0.0 1mp:0 1mb:0 1mt:0)
-EntranceNode: http(t:1 pq:98.0 bq:12.0 tq:110.0 rt:0.7422680412371134 prq:97.0 1mp:98 1mb:12 1mt:110)
--GET /orders(t:1 pq:98.0 bq:12.0 tq:110.0 rt:0.7422680412371134 prq:97.0 1mp:98 1mb:12 1mt:110)
---sql orders.select(t:1 pq:21.0 bq:0.0 tq:21.0 rt:1.2 prq:20.0 1mp:21 1mb:0 1mt:21)
-EntranceNode: jobs(t:0 pq:2.0 bq:0.0 tq:2.0 rt:0.0 prq:2.0 1mp:2 1mb:0 1mt:2)
--sql orders.select(t:0 pq:2.0 bq:0.0 tq:2.0 rt:0.0 prq:2.0 1mp:2 1mb:0 1mt:2)
`+"\r\n\r\nt:threadNum  pq:passQps  bq:blockQps  tq:totalQps  rt:averageRt  prq: passRequestQps 1mp:1m-pass 1mb:1m-block 1mt:1m-total\r\n",
		sentinel(t, shop(t).tree()))
}

func TestWritersReportTheWritersError(t *testing.T) {
	tree := newLab(t, engine.Config{}).tree()
	require.ErrorIs(t, tree.WriteText(failing{}), errFull)
	require.ErrorIs(t, tree.WriteSentinel(failing{}), errFull)
}
