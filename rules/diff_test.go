package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new []flow.Rule
		counts   string
		lines    []string
	}{
		{"nothing", nil, nil, "+0 ~0 -0", nil},
		{"equal", golden.Flow, golden.Flow, "+0 ~0 -0", nil},
		{"added, changed and removed",
			[]flow.Rule{{Resource: "a", Threshold: 1}, {ID: "b", Resource: "b", Threshold: 1}, {Resource: "GET /c", Threshold: 1}},
			[]flow.Rule{{ID: "d", Resource: "d"}, {ID: "b", Resource: "b", Threshold: 2.5, Origin: "app a"}, {Resource: "a", Threshold: 1}, {Resource: "e"}},
			"+2 ~1 -1",
			[]string{`+ flow d`, `+ flow flow:e`, `~ flow b: threshold 1 -> 2.5, origin default -> "app a"`, `- flow "flow:GET /c"`}},
		{"defaults written out are the same",
			[]flow.Rule{{Resource: "a", Threshold: 1}},
			[]flow.Rule{{ID: "flow:a", Resource: "a", Threshold: 1, Interval: time.Second, Buckets: 50, Origin: "default"}},
			"+0 ~0 -0", nil},
		{"only the order",
			[]flow.Rule{{Resource: "a"}, {Resource: "b"}}, []flow.Rule{{Resource: "b"}, {Resource: "a"}}, "+0 ~0 -0", nil},
		{"made ids that meet are numbered",
			[]flow.Rule{{Resource: "a", Threshold: 1}, {Resource: "a", Threshold: 2}, {Resource: "a", Threshold: 3}},
			[]flow.Rule{{Resource: "a", Threshold: 1}, {Resource: "a", Threshold: 5}},
			"+0 ~1 -1", []string{"~ flow flow:a#2: threshold 2 -> 5", "- flow flow:a#3"}},
		{"what a default follows from",
			[]flow.Rule{{Resource: "a"}}, []flow.Rule{{ID: "flow:a", Resource: "a", Behavior: flow.WarmUp}},
			"+0 ~1 -0", []string{"~ flow flow:a: behavior reject -> warmUp, warmUpPeriod 0s -> 10s, coldFactor 0 -> 3"}},
		{"rules that Parse would refuse",
			[]flow.Rule{{ID: "x"}, {ID: "x", Metric: 9}}, []flow.Rule{{ID: "x"}, {ID: "y", Resource: strings.Repeat("y", 100)}},
			"+1 ~1 -0", []string{"+ flow y", `~ flow x: metric metric(9) -> qps`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := Diff(Set{Flow: c.old}, Set{Flow: c.new})
			assert.Equal(t, c.counts, change.String())
			assert.Equal(t, c.lines, change.Lines())
			assert.Equal(t, c.lines == nil, change.Empty())
		})
	}
}

func TestDiffIsWhatTurnsOldIntoNew(t *testing.T) {
	there, back := Diff(Set{}, golden), Diff(golden, Set{})
	assert.Equal(t, there.Added, back.Removed)
	assert.Len(t, there.Added, golden.Len())
}

// Text from a file must stay on its line of the log.
func TestChangeLinesAreLines(t *testing.T) {
	for _, line := range Diff(Set{}, golden).Lines() {
		assert.NotRegexp(t, `[\x00-\x1F\x7F\x{85}\x{2028}]`, line)
	}
}

func TestChangeText(t *testing.T) {
	night, many := "the reports that are made at night", strings.Repeat("caller, ", 20)
	old := Set{Flow: []flow.Rule{{ID: "orders", Resource: "a", Threshold: 100}, {ID: night, Resource: "b", Threshold: 5}, {ID: "gone", Resource: "c"}}}
	new := Set{Flow: []flow.Rule{
		{ID: strings.Repeat("\n", 60), Resource: "d"}, {ID: "orders", Resource: "a", Threshold: 200},
		{ID: night, Resource: "b", Threshold: 10, Behavior: flow.Throttle, Origin: many},
	}}
	change := Diff(old, new)
	assert.Equal(t, `+1 ~2 -1
+ flow "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\…
~ flow orders: threshold 100 -> 200
~ flow "the reports that are made at night":
    threshold 5 -> 10
    buckets 50 -> 0
    origin default
      -> "caller, caller, caller, caller, caller, caller, caller, call…"
    behavior reject -> throttle
    maxWait 0s -> 500ms
- flow gone
`, change.Text())
	for line := range strings.Lines(change.Text()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80)
	}
	assert.Equal(t, "+0 ~0 -0\n", Change{}.Text())
}

// The text of a change shows the difference even deep inside a long value.
// known bug 158
func TestDiffShowsWhereLongValuesDiffer(t *testing.T) {
	set := func(threshold float64, caller string) Set {
		exceptions := make([]hotspot.Exception, 30)
		for i := range exceptions {
			exceptions[i] = hotspot.Exception{Value: hotspot.ValueOf(fmt.Sprint("größe-", i)), Threshold: 5}
		}
		exceptions[29].Threshold = threshold
		return Set{
			Hotspot:   []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 5, Exceptions: exceptions}},
			Authority: []authority.Rule{{ID: "back", Resource: "refunds", Origins: []string{"one-service-with-a-long-name", "another-service-with-a-long-name", caller}}},
			Flow:      []flow.Rule{{ID: "short", Resource: "a", Ref: "abcdefghijklmnopqrstuvwxyz0", Relation: flow.Chain, Threshold: threshold}},
		}
	}
	change := Diff(set(5, "billing"), set(1e6, "stranger"))
	for _, text := range []string{change.Text(), strings.Join(change.Lines(), "\n"), change.logText()} {
		for _, want := range []string{"stranger", "billing", "1000000", `…`, "threshold 5 -> 1000000"} {
			assert.Contains(t, text, want)
		}
	}
	for line := range strings.Lines(change.Text()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), maxColumns+1)
	}
	assert.Equal(t, `ref abcdefghijklmnopqrstuvwxyz0 -> abcdefghijklmnopqrstuvwxyz1`,
		FieldChange{"ref", "abcdefghijklmnopqrstuvwxyz0", "abcdefghijklmnopqrstuvwxyz1"}.String(), "which is short")
	kept := strings.Repeat("ö", beforeDifference)
	long := kept + kept
	assert.Equal(t, "ref …"+kept+" -> …"+kept+"ü", FieldChange{"ref", long, long + "ü"}.String())
	got := FieldChange{"ref", long + "\xc3a", long + "\xc3b"}.String()
	assert.Contains(t, got, `ö\xc3a" -> "…`, "no UTF-8")
	assert.True(t, strings.HasSuffix(got, `ö\xc3b"`))
}
