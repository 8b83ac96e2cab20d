package inspect_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

func TestTreeTellsWhatRulesDid(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.rules(
		flow.Rule{ID: "limit", Resource: "r", Threshold: 3},
		flow.Rule{ID: "try", Resource: "r", Threshold: 2, Mode: spec.Shadow},
	)
	for range 5 {
		e, err := l.Enter(anywhere, "r", nil)
		if err == nil {
			defer e.Exit()
		}
	}
	tree := l.tree()
	require.Equal(t, []core.RuleStats{
		{Kind: core.KindFlow, ID: "limit", Resource: "r", Asked: true, Refused: 2},
		{Kind: core.KindFlow, ID: "try", Resource: "r", Mode: spec.Shadow, Asked: true, ShadowBlocked: 1},
	}, tree.Rules)

	var text strings.Builder
	require.NoError(t, tree.WriteText(&text))
	require.Contains(t, text.String(), "\nshadow flow rule try: would have refused 1 calls\n")

	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, jsonRule{Kind: "flow", ID: "try", Resource: "r", Mode: "shadow", Asked: true, ShadowBlocked: 1}, got.Rules[1])
}

// half is a machine with half of its memory in use.
type half struct{ err error }

func (half) Load(int64) (float64, error) { return 0, nil }
func (half) CPU(int64) (float64, error)  { return 0, nil }
func (h *half) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: 1 << 29, Limit: 1 << 30}, h.err
}

func TestTreeTellsOfMemory(t *testing.T) {
	m := new(half)
	l := newLab(t, engine.Config{Host: m})
	l.rules(
		flow.Rule{ID: "share", Resource: "r", Threshold: 30, MemoryThreshold: 10, LowMemory: flow.Share(0.25), HighMemory: flow.Share(0.75)},
		flow.Rule{ID: "bytes", Resource: "r", Threshold: 30, MemoryThreshold: 10, LowMemory: flow.Bytes(1), HighMemory: flow.Bytes(1 << 20)},
	)
	tree := l.tree()
	var text strings.Builder
	require.NoError(t, tree.WriteText(&text))
	require.Contains(t, text.String(), "\nflow rule share: threshold 20, memory 50 %\nflow rule bytes: threshold 10, memory 512 MiB\n")
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, jsonRule{Kind: "flow", ID: "share", Resource: "r", Mode: "enforce", Details: jsonDetails{Threshold: 20, Memory: 0.5},
		Lines: []string{"threshold 20, memory 50 %"}}, got.Rules[0])

	m.err = errors.New("gone")
	l.Sampler().Sample()
	text.Reset()
	require.NoError(t, l.tree().WriteText(&text))
	require.Contains(t, text.String(), "\nflow rule share: threshold 30, memory use unknown\n")
	l.rules()
}

func TestTreeTellsTheHottestValues(t *testing.T) {
	l := newLab(t, engine.Config{})
	require.NoError(t, l.Update(func(b *engine.SnapshotBuilder) error {
		return hotspot.Compile(b, []hotspot.Rule{{ID: "users", Resource: "r", Param: "user", Threshold: 3, MaxValues: 2}})
	}))
	for user, calls := range map[string]int{"ann": 9, "bob\n": 2, "cid": 1} {
		for range calls {
			e, err := l.Enter(anywhere, "r", []engine.Option{engine.Param("user", user)})
			if err == nil {
				defer e.Exit()
			}
		}
	}
	tree := l.tree()
	require.Equal(t, 2, tree.Rules[0].Details.(hotspot.Stats).Values)
	var text strings.Builder
	require.NoError(t, tree.WriteText(&text))
	require.Contains(t, text.String(), "\nhotspot rule users: 2 values; hottest ")
	require.Contains(t, text.String(), " times the table was full and a value shared a limit\n")

	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Len(t, got.Rules[0].Details.Top, 2)
	for _, v := range got.Rules[0].Details.Top {
		require.Equal(t, "r", v.Resource)
		require.Contains(t, []string{`"ann"`, `"bob\n"`, `"cid"`}, v.Value)
		require.Equal(t, "units in 1s", v.Measure.Of)
		require.LessOrEqual(t, v.Measure.Measured, v.Measure.Limit)
	}
	require.NotZero(t, got.Rules[0].Details.Overflowed)
}

func TestTreeTellsWhatWasLearned(t *testing.T) {
	l := newLab(t, engine.Config{})
	require.NoError(t, l.Update(func(b *engine.SnapshotBuilder) error {
		return adaptive.Compile(b, []adaptive.Rule{
			{ID: "learn", Resource: "r", Window: 10 * time.Millisecond},
			{ID: "watch", Resource: "s\n", Start: 7, Mode: spec.Shadow},
		})
	}))
	e, err := l.Enter(anywhere, "s\n", nil) // in shadow mode a rule makes no node
	require.NoError(t, err)
	e.Exit()
	var text strings.Builder
	require.NoError(t, l.tree().WriteText(&text))
	require.Contains(t, text.String(), "\nadaptive rule learn: limit of r is 20, now 40\nshadow adaptive rule watch: would have refused 0 calls\nshadow adaptive rule watch: limit of s\\n is 7\n")

	for range 300 {
		var in []engine.Entry
		for {
			e, err := l.Enter(anywhere, "r", nil)
			if err != nil {
				break
			}
			in = append(in, e)
		}
		l.clock.Advance(10 * time.Millisecond)
		for i, e := range in { // eight at once
			if i%8 == 0 && i > 0 {
				l.clock.Advance(10 * time.Millisecond)
			}
			e.Exit()
		}
	}
	tree := l.tree()
	learned := tree.Rules[0].Details.(adaptive.Stats).Limits[0]
	require.InDelta(t, 8, learned.Limit, 2)
	text.Reset()
	require.NoError(t, tree.WriteText(&text))
	require.Regexp(t, `\nadaptive rule learn: limit of r is \d+, now \d+; rt below 10ms, above 1\dms; \d+/s\n`, text.String())

	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	limits := got.Rules[0].Details.Limits
	require.Len(t, limits, 1)
	require.Equal(t, jsonLimit{
		Resource: "r", Limit: learned.Limit, InForce: learned.InForce,
		FloorRTMs: float64(learned.FloorRT) / 1e6, LimitRTMs: float64(learned.LimitRT) / 1e6, ThroughputPerSecond: learned.Throughput,
	}, limits[0])
	require.Zero(t, got.Rules[1].Details.Limits[0].InForce)
}
