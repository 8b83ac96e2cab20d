package inspect_test

import (
	"encoding/json"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/stat"
)

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields() // so that the types above name every key
	require.NoError(t, d.Decode(into))
}

func TestJSONHoldsEveryFigureOfTheTree(t *testing.T) {
	tree := shop(t).tree()
	tree.Waiting, tree.Failures, tree.Leaked = 3, 7, 5
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)

	require.Equal(t, tree.At, got.At)
	require.EqualValues(t, 3, got.Waiting)
	require.EqualValues(t, 7, got.Failures)
	require.EqualValues(t, 5, got.Leaked)
	require.Equal(t, tree.Caps.Resources, got.Caps.Resources)
	require.Equal(t, tree.Caps.Contexts, got.Caps.Contexts)
	require.Equal(t, tree.Caps.Calls, got.Caps.Calls)
	require.Equal(t, tree.Caps.Origins, got.Caps.Origins)
	sameNode(t, &tree.Root, &got.Root)
	sameNode(t, &tree.Inbound, &got.Inbound)
	require.Len(t, got.Resources, len(tree.Resources))
	for i := range got.Resources {
		sameNode(t, &tree.Resources[i], &got.Resources[i])
	}
}

func sameNode(t *testing.T, want *inspect.Node, got *jsonNode) {
	t.Helper()
	rates := want.Rates()
	require.Equal(t, want.Name, got.Name)
	require.Equal(t, want.Kind, got.Kind)
	require.Equal(t, want.Overflow, got.Overflow)
	require.Equal(t, rates.Pass, got.PassPerSecond)
	require.Equal(t, rates.Block, got.BlockPerSecond)
	require.Equal(t, want.TotalRate(), got.TotalPerSecond)
	require.Equal(t, rates.Complete, got.CompletePerSecond)
	require.Equal(t, rates.Exception, got.ExceptionPerSecond)
	require.Equal(t, rates.Occupied, got.OccupiedPerSecond)
	require.InDelta(t, want.AvgRT().Seconds()*1e3, got.AvgRTMs, 1e-6)
	sameMinRT(t, &want.Second, got.MinRTMs)
	require.Equal(t, want.MaxComplete(), got.MaxCompletePerBucket)
	require.Equal(t, want.MaxCompleteRate(), got.MaxCompletePerSecond)
	require.Equal(t, want.InFlight, got.InFlight)
	require.Equal(t, want.Waiting, got.Waiting)
	sameCounts(t, &want.Second, &got.Second)
	sameCounts(t, &want.LastSecond, &got.LastSecond)
	sameCounts(t, &want.Minute, &got.Minute)
	sameCounts(t, &want.Lifetime, &got.Lifetime)
	require.Len(t, got.Children, len(want.Children))
	for i := range got.Children {
		sameNode(t, &want.Children[i], &got.Children[i])
	}
	require.Len(t, got.Origins, len(want.Origins))
	for i := range got.Origins {
		sameNode(t, &want.Origins[i], &got.Origins[i])
	}
}

func sameCounts(t *testing.T, want *stat.Counts, got *jsonCounts) {
	t.Helper()
	sameMinRT(t, want, got.MinRTMs)
	got.MinRTMs = nil
	require.Equal(t, jsonCounts{
		Pass: want.Pass, Block: want.Block, Total: want.Total(), Complete: want.Complete, Exception: want.Exception,
		Occupied: want.Occupied, Entered: want.Entered, Exited: want.Exited, RTMs: float64(want.RT) / 1e6,
	}, *got)
}

func sameMinRT(t *testing.T, want *stat.Counts, got *float64) {
	t.Helper()
	least, ok := want.MinRT()
	require.Equal(t, ok, got != nil, "absent if nothing completed")
	if ok {
		require.InDelta(t, float64(least)/1e6, *got, 1e-9)
	}
}

func TestJSONKeysStay(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.call(from("web", "app"), 1, 3500*time.Microsecond, "orders", engine.Units(2))
	n, ok := l.tree().Resource("orders")
	data, err := json.Marshal(found(t, n, ok))
	require.NoError(t, err)
	counts := `{"pass":2,"block":0,"total":2,"complete":2,"exception":0,"occupied":0,"entered":1,"exited":1,"rtMs":3.5,"minRtMs":3.5}`
	none := `{"pass":0,"block":0,"total":0,"complete":0,"exception":0,"occupied":0,"entered":0,"exited":0,"rtMs":0}`
	figures := `"passPerSecond":2,"blockPerSecond":0,"totalPerSecond":2,"completePerSecond":2,"exceptionPerSecond":0,"occupiedPerSecond":0,` +
		`"avgRtMs":3.5,"minRtMs":3.5,"maxCompletePerBucket":2,"maxCompletePerSecond":4,"inFlight":0,"waiting":0,` +
		`"second":` + counts + `,"lastSecond":` + none + `,"minute":` + counts + `,"lifetime":` + counts
	require.Equal(t, `{"name":"orders","kind":"resource",`+figures+`,"origins":[{"name":"app","kind":"origin",`+figures+`}]}`, string(data))
}

func TestJSONOfNothing(t *testing.T) {
	for name, tree := range map[string]inspect.Tree{
		"zero value":   {},
		"unused":       newLab(t, engine.Config{}).tree(),
		"huge figures": {Root: inspect.Node{Stats: inspect.Stats{InFlight: math.MaxInt64, Second: stat.Counts{Pass: math.MaxInt64, RT: math.MaxInt64}}}},
	} {
		data, err := json.Marshal(tree)
		require.NoError(t, err, name)
		var got jsonTree
		decode(t, data, &got)
		require.NotContains(t, string(data), "null", "empty lists are lists")
	}
}

func TestJSONOfAnyName(t *testing.T) {
	for name := range hostile {
		l := newLab(t, engine.Config{})
		l.call(from(name, name), 1, 0, name)
		data, err := json.Marshal(l.tree())
		require.NoError(t, err)
		require.NotContains(t, string(data), "\n")
		var got jsonTree
		decode(t, data, &got)
		want := strings.ToValidUTF8(name, "\uFFFD")
		require.Equal(t, want, got.Resources[0].Name)
		if utf8.ValidString(name) {
			require.Empty(t, got.Resources[0].Escaped)
		} else {
			back, err := url.QueryUnescape(got.Resources[0].Escaped)
			require.NoError(t, err)
			require.Equal(t, name, back)
		}
		require.Equal(t, want, got.Resources[0].Origins[0].Name)
	}
}

func TestJSONOfAVeryDeepTreeCanBeRead(t *testing.T) {
	l := newLab(t, engine.Config{})
	ctx := from("web", "")
	for i := range 5_100 { // two levels of JSON each, and encoding/json reads 10,000
		e := l.enter(ctx, string(rune('一'+i)))
		defer e.Exit()
		ctx = e.Context()
	}
	data, err := json.Marshal(l.tree())
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Less(t, len(text(t, l.tree())), 5_100*500)
}

func TestKindsAreText(t *testing.T) {
	for kind := inspect.NodeRoot; kind <= inspect.NodeInbound; kind++ {
		data, err := kind.MarshalText()
		require.NoError(t, err)
		require.Equal(t, kind.String(), string(data))
		var back inspect.NodeKind
		require.NoError(t, back.UnmarshalText(data))
		require.Equal(t, kind, back)
	}
	_, err := inspect.NodeKind(99).MarshalText()
	require.Error(t, err)
	require.Error(t, new(inspect.NodeKind).UnmarshalText([]byte("none")))
}
