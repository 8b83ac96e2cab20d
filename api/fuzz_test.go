package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

// FuzzNames gives a resource, its caller and its context names of any bytes. The limits hold, and
// each name takes exactly one line in text, or one object in JSON.
// known bug 104
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"orders", "a\nb", "a\r\nlevel=ERROR msg=forged", "\x1b[31mred\x1b[0m", "a\u2028b\u0085c", "nul\x00", "\x7f", `"}{"x":1`, `\`, "\xff\xfe", "*", "a|b", " ",
		"%s%d%!", "\u202eright to left", "(.*", "漢字", "e\u0301", "├─ orders", "<script>alert(1)</script>", "../../etc/passwd", "\ufeff",
		node.OverflowName, node.InboundName, node.RootName, node.DefaultContext, flow.OriginOther, flow.OriginDefault,
	} {
		f.Add(name, "", "", uint32(0))
		f.Add("orders", name, "web", uint32(0))
		f.Add("orders", "app", name, uint32(0))
		f.Add(name, name, name, ^uint32(0)-(1<<16-1)+100) // a hundred times
	}
	f.Add("\x1b\n", "\xf0\x9f", "\r", ^uint32(0)-60_000)
	f.Fuzz(func(t *testing.T, resource, origin, in string, times uint32) {
		if resource == "" {
			_, err := api.Entry(t.Context(), "")
			require.ErrorIs(t, err, core.ErrInvalid)
			return
		}
		// The last 65,536 numbers repeat the names, up to a megabyte each.
		if n := int64(times) - (1<<32 - 1<<16); n > 0 {
			resource, origin, in = long(resource, int(n)), long(origin, int(n)), long(in, int(n))
		}
		if max(len(resource)+room, len(origin), len(in)) > pattern.MaxName {
			checkLong(t, resource, origin, in)
			return
		}
		newNamed(t, resource, origin, in).check()
	})
}

// room is the number of bytes that check adds to the names.
const room = 2

// known bug 104
func TestLongestNames(t *testing.T) {
	name := long("\x1b[31m\n", 1<<20)
	checkLong(t, name, "app", "web")
	checkLong(t, "orders", name, "web")
	checkLong(t, "orders", "app", name)
	name = name[:pattern.MaxName]
	newNamed(t, name[room:], name, name).check()
}

func long(name string, n int) string {
	return strings.Repeat(name, min(n, 1<<20/max(1, len(name))))
}

// checkLong checks that a call with a name of more than pattern.MaxName bytes leaves nothing
// behind, and that no rule can name it; a slightly shorter name works like any other.
func checkLong(t *testing.T, resource, origin, in string) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: ".*", Match: spec.MatchRegex, Threshold: 1})
	tooLong := max(len(resource), len(origin), len(in)) > pattern.MaxName
	for _, enter := range []func() (api.Admitted, error){
		func() (api.Admitted, error) {
			return g.Entry(api.WithOrigin(api.WithContext(t.Context(), in), origin), resource)
		},
		func() (api.Admitted, error) {
			return g.Resource(resource).Entry(api.WithOrigin(api.WithContext(t.Context(), in), origin))
		},
	} {
		e, err := enter()
		e.Exit()
		if tooLong {
			require.ErrorIs(t, err, core.ErrInvalid)
			require.Less(t, len(err.Error()), 100)
		} else {
			require.NotErrorIs(t, err, core.ErrInvalid)
		}
	}
	if tooLong {
		tree := g.Tree()
		require.Empty(t, tree.Resources)
		require.Len(t, tree.Root.Children, 1)
	}
	err := g.LoadRules(rules.Set{Flow: []flow.Rule{
		{ID: "r", Resource: resource, Threshold: 1, Origin: origin}, {ID: "s", Resource: "orders", Relation: flow.Chain, Ref: "x" + in, Threshold: 1},
	}})
	require.Equal(t, max(len(resource), len(origin), len("x"+in)) > pattern.MaxName, err != nil, "%v", err)
}

// named is a guard under test whose calls have arbitrary names.
type named struct {
	*api.Guard
	t                *testing.T
	resource, origin string
	ctx              context.Context
	log              bytes.Buffer
	records          int
}

func newNamed(t *testing.T, resource, origin, in string) *named {
	ctx := api.WithOrigin(api.WithContext(t.Context(), in), origin)
	n := &named{t: t, resource: resource, origin: origin, ctx: ctx}
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	logger := slog.New(recording{slog.NewTextHandler(&n.log, nil), &n.records})
	n.Guard = newGuard(t, api.Config{Clock: clock, Caps: node.Caps{Resources: 1, Contexts: 1, Origins: 1}, Logger: logger}, forAll...)
	books.Keep(t, n.Engine())
	err := n.LoadRules(rules.Set{Flow: append([]flow.Rule{
		{ID: resource, Resource: resource, Threshold: 2},
		{Resource: resource, Threshold: 1, Origin: flow.OriginOther},
	}, forAll...)})
	require.Equal(t, utf8.ValidString(resource), err == nil, "%v", err)
	return n
}

var forAll = []flow.Rule{
	{ID: "any", Resource: ".*", Match: spec.MatchRegex, Threshold: 3},
	{Resource: ".*", Match: spec.MatchRegex, Threshold: 0, Mode: spec.Shadow},
}

// nameable reports whether a rule can name exactly this resource.
func (n *named) nameable() bool { return utf8.ValidString(n.resource) && n.resource != api.AnyResource }

// recording counts the records that it is given.
type recording struct {
	slog.Handler
	records *int
}

func (r recording) Handle(ctx context.Context, record slog.Record) error {
	*r.records++
	return r.Handler.Handle(ctx, record)
}

func (n *named) check() {
	want := 2
	switch {
	case !n.nameable():
		want = 3
	case n.origin != "":
		want = 1 // no rule names it
	}
	require.Equal(n.t, want, n.admitted(n.resource, 5), "the limit holds")

	// The first of the other names gets the only node, and three calls, unless the resource already
	// has it. All others have three calls together.
	others := 0
	for i := range 6 {
		others += n.admitted(n.resource+"\n"+strconv.Itoa(i), 2)
	}
	switch {
	case n.resource == node.OverflowName: // its rules apply to the others too
		require.Equal(n.t, 2, others)
	case n.nameable():
		require.Equal(n.t, 2+3, others, "the rule for all names holds for the rest together")
	default:
		require.Equal(n.t, 3, others, "the rule for all names holds for the rest together")
	}
	require.Zero(n.t, n.Engine().Failures())

	n.checkText(n.Tree())
	n.checkJSON()
	n.checkHTTP()
	for _, line := range rules.Diff(rules.Set{}, n.Rules()).Lines() {
		n.oneLine(line)
	}
	require.NotZero(n.t, n.records)
	lines := strings.Split(strings.TrimSuffix(n.log.String(), "\n"), "\n")
	require.Len(n.t, lines, n.records, "one line for each record")
	for _, line := range lines {
		n.oneLine(line)
		require.Regexp(n.t, `^time=\S+ level=WARN msg="penstock: blocked" kind=flow resource=`, line)
	}
}

// admitted returns how many of the calls pass.
func (n *named) admitted(name string, calls int) (passed int) {
	for range calls {
		e, err := n.Entry(n.ctx, name, api.Inbound())
		if err == nil {
			passed++
		} else {
			require.ErrorIs(n.t, err, core.ErrBlocked)
			n.oneLine(err.Error())
		}
		e.Exit()
	}
	return passed
}

func (n *named) oneLine(text string) {
	n.t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) {
			n.t.Fatalf("%q in %.200q", r, text)
		}
	}
	require.True(n.t, utf8.ValidString(text))
}

// checkText checks that the tree as text has a line for each node, below a heading.
func (n *named) checkText(tree inspect.Tree) {
	nodes, shown := 0, 1
	for _, at := range tree.Walk() {
		nodes++
		if at.Kind != inspect.NodeEntrance || len(at.Children) > 0 {
			shown++
		}
	}
	var out bytes.Buffer
	require.NoError(n.t, tree.WriteText(&out))
	text, attention, _ := strings.Cut(out.String(), "\n\n")
	lines := strings.Split(text, "\n")
	require.Len(n.t, lines, shown, "%s", text)
	for _, line := range append(lines, strings.Split(strings.TrimSuffix(attention, "\n"), "\n")...) {
		n.oneLine(line)
		require.LessOrEqual(n.t, utf8.RuneCountInString(line), 160)
	}

	out.Reset()
	require.NoError(n.t, tree.WriteSentinel(&out))
	text, _, _ = strings.Cut(out.String(), "\n\r\n\r\n")
	lines = strings.Split(text, "\n")
	require.Len(n.t, lines, nodes)
	for _, line := range lines {
		n.oneLine(line)
	}
}

// checkJSON checks that the names come out as they went in, up to what JSON can represent.
func (n *named) checkJSON() {
	body, err := json.Marshal(n.Tree())
	require.NoError(n.t, err)
	var tree struct {
		Resources []struct {
			Name    string
			Origins []struct{ Name string }
		}
	}
	require.NoError(n.t, json.Unmarshal(body, &tree))
	for _, r := range tree.Resources {
		if r.Name == asJSON(n.resource) {
			if n.origin != "" {
				require.Equal(n.t, asJSON(n.origin), r.Origins[0].Name)
			}
			return
		}
	}
	n.t.Fatalf("no resource %.200q", n.resource)
}

func asJSON(name string) (shown string) {
	text, _ := json.Marshal(name)
	_ = json.Unmarshal(text, &shown)
	return shown
}

func (n *named) checkHTTP() {
	h := n.Handler()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for _, path := range []string{"/tree", "/tree?format=sentinel", "/tree?format=json", "/nodes"} {
		w := get(path)
		require.Equal(n.t, http.StatusOK, w.Code, path)
		require.Equal(n.t, strings.HasSuffix(path, "json") || path == "/nodes", json.Valid(w.Body.Bytes()), path)
	}
	if len(n.resource) < 1000 {
		w := get("/nodes?id=" + url.QueryEscape(n.resource))
		require.Equal(n.t, http.StatusOK, w.Code)
		require.NotEqual(n.t, "0", w.Header().Get("X-Total-Count"))
	}
	for _, format := range []string{"yaml", "json"} {
		w := get("/rules?format=" + format)
		require.Equal(n.t, http.StatusOK, w.Code)
		if w.Body.Len() < 60_000 { // otherwise it may be more than a file can hold
			set, err := rules.Parse("rules."+format, w.Body.Bytes())
			require.NoError(n.t, err)
			require.Equal(n.t, n.Rules(), set)
		}
	}
}
