package replay_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/replay"
	"github.com/penstock-go/penstock/system"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

func played(t *testing.T, set api.RuleSet, calls iter.Seq[replay.Call]) replay.Report {
	t.Helper()
	report, err := replay.Play(set, calls)
	require.NoError(t, err)
	again, err := replay.Play(set, calls)
	require.NoError(t, err)
	require.Equal(t, report, again, "the same calls have the same outcome")
	assert.Equal(t, report.Offered, report.Passed+report.Refused)
	return report
}

// The stamps of a real log, spread over their seconds: by aligned second, a limit refuses what exceeds
// it in each of them.
func TestRealLog(t *testing.T) {
	file, err := os.Open("testdata/stamps.gz")
	require.NoError(t, err)
	defer file.Close()
	in, err := gzip.NewReader(file)
	require.NoError(t, err)
	var stamps []int64
	for lines := bufio.NewScanner(in); lines.Scan(); {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		require.NoError(t, err)
		stamps = append(stamps, n)
	}
	require.Len(t, stamps, 10_000)
	slices.Sort(stamps)
	counts := make(map[int64]int64)
	for _, s := range stamps {
		counts[s]++
	}
	calls := func(yield func(replay.Call) bool) {
		n := int64(0)
		for i, s := range stamps {
			if i > 0 && stamps[i-1] != s {
				n = 0
			}
			at := time.Unix(s, n*int64(time.Second)/counts[s])
			n++
			if !yield(replay.Call{At: at, Resource: "all", Client: "c" + strconv.Itoa(i%7)}) {
				return
			}
		}
	}
	for limit, refused := range map[float64]int64{3: 1023, 5: 103} {
		report := played(t, api.RuleSet{Flow: []flow.Rule{{ID: "all", Resource: "*", Threshold: limit, Buckets: 1, Window: flow.Ring}}}, calls)
		assert.Equal(t, refused, report.Refused)
		r := report.Rules[0]
		assert.Equal(t, [3]int64{10_000, 10_000 - refused, refused}, [3]int64{r.Offered, r.Passed, r.Refused})
		most := slices.Max(slices.Collect(values(counts)))
		assert.Equal(t, most, r.Worst.Offered)
		assert.Equal(t, most-int64(limit), r.Worst.Refused)
		assert.EqualValues(t, 7, report.Clients)
		assert.Equal(t, time.Unix(stamps[0], 0).UTC(), report.From)
	}
}

func values(of map[int64]int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, v := range of {
			if !yield(v) {
				return
			}
		}
	}
}

func TestRulesOfEachCall(t *testing.T) {
	set := api.RuleSet{
		Flow: []flow.Rule{
			{ID: "orders", Resource: "GET /orders", Threshold: 2},
			{ID: "acme", Resource: "GET /catalog", Threshold: 1, Origin: "acme"},
			{ID: "shadow", Resource: "GET /orders", Threshold: 1, Mode: api.Shadow},
			{ID: "off", Resource: "GET /orders", Threshold: 1, Mode: api.Off},
		},
		Hotspot: []hotspot.Rule{{ID: "ip", Resource: "GET /users", Param: "ip", Threshold: 1}},
		System:  []system.Rule{{ID: "cpu", Metric: system.CPU, Threshold: 0.5}},
	}
	var calls []replay.Call
	for i := range 4 {
		at := after(time.Duration(i) * 100 * time.Millisecond)
		calls = append(calls, replay.Call{At: at, Resource: "GET /orders", Client: "a"},
			replay.Call{At: at, Resource: "GET /catalog", Client: "b", Origin: "acme"}, replay.Call{At: at, Resource: "GET /catalog", Client: "b"},
			replay.Call{At: at, Resource: "GET /users", Client: strconv.Itoa(i % 2), Params: []replay.Param{{"ip", strconv.Itoa(i % 2)}}})
	}
	report := played(t, set, slices.Values(calls))
	var got []string
	for _, r := range report.Rules {
		got = append(got, fmt.Sprint(r.Kind, " ", r.ID, " ", r.Shadow, ": ", r.Offered, " ", r.Passed, " ", r.Refused, " by ", r.Clients, " ", r.Top))
	}
	assert.ElementsMatch(t, []string{
		"system cpu false: 16 9 0 by 0 []",
		"hotspot ip false: 4 2 2 by 2 [{0 1} {1 1}]",
		"flow orders false: 4 2 2 by 1 [{a 2}]",
		"flow acme false: 4 1 3 by 1 [{b 3}]",
		"flow shadow true: 4 2 1 by 0 []",
	}, got)
	assert.EqualValues(t, 4, report.Clients)
}

// Calls wait in queues and hold their permits until they end; breakers see failures.
func TestTimeOfCalls(t *testing.T) {
	set := api.RuleSet{
		Flow:      []flow.Rule{{ID: "reports", Resource: "reports", Threshold: 10, Behavior: flow.Throttle, MaxWait: 250 * time.Millisecond}},
		Isolation: []isolation.Rule{{ID: "search", Resource: "search", Threshold: 1, MaxQueue: 1, MaxWait: time.Second}},
		Breaker:   []breaker.Rule{{ID: "pay", Resource: "pay", Strategy: breaker.ErrorCount, Threshold: 2, MinCalls: 1, Recovery: time.Second}},
	}
	var calls []replay.Call
	for range 5 {
		calls = append(calls, replay.Call{At: start, Resource: "reports"})
	}
	for range 3 {
		calls = append(calls, replay.Call{At: start, Resource: "search", Took: 400 * time.Millisecond})
	}
	for i := range 10 {
		calls = append(calls, replay.Call{At: after(time.Duration(i) * time.Millisecond), Resource: "pay", Failed: true})
	}
	report := played(t, set, slices.Values(calls))
	of := make(map[string]replay.Rule)
	for _, r := range report.Rules {
		of[r.ID] = r
	}
	r := of["reports"]
	assert.Equal(t, [4]int64{5, 3, 2, 2}, [4]int64{r.Offered, r.Passed, r.Refused, r.Waited})
	assert.InEpsilon(t, 200*time.Millisecond, r.WaitP99, 0.001)
	assert.Equal(t, 200*time.Millisecond, r.WaitMax)
	s := of["search"]
	assert.Equal(t, [4]int64{3, 2, 1, 1}, [4]int64{s.Offered, s.Passed, s.Refused, s.Waited})
	assert.Equal(t, 400*time.Millisecond, s.WaitMax)
	b := of["pay"]
	assert.EqualValues(t, 1, b.Opened)
	assert.Equal(t, b.Passed, report.Failed)
	assert.Equal(t, b.Offered, b.Passed+b.Refused)
	assert.Positive(t, b.Refused)
	assert.Zero(t, b.Waited)
}

func TestWithoutCalls(t *testing.T) {
	report := played(t, api.RuleSet{Flow: []flow.Rule{{ID: "a", Resource: "a", Threshold: 1}}}, slices.Values([]replay.Call{}))
	assert.Len(t, report.Rules, 1)
	assert.True(t, report.From.IsZero())
	_, err := replay.Play(api.RuleSet{Flow: []flow.Rule{{Resource: "a", Threshold: -1}}}, slices.Values([]replay.Call{{At: start}}))
	assert.Error(t, err)
	_, err = replay.Play(api.RuleSet{}, slices.Values([]replay.Call{{At: start}}))
	assert.Error(t, err, "a call without a resource")
}

// A call that comes too late arrives with the one before it.
func TestLateCall(t *testing.T) {
	set := api.RuleSet{Flow: []flow.Rule{{ID: "a", Resource: "a", Threshold: 1}}}
	report := played(t, set, slices.Values([]replay.Call{{At: after(time.Second), Resource: "a"}, {At: start, Resource: "a"}}))
	assert.EqualValues(t, 1, report.Refused)
	assert.Equal(t, report.From, report.To)
}

// Random traffic under fixed windows agrees with a model of a few lines.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	for range 50 {
		limits := []float64{1 + float64(random.IntN(5)), 1 + float64(random.IntN(5))}
		intervals := []time.Duration{time.Second, time.Minute}
		var set api.RuleSet
		for i := range limits {
			set.Flow = append(set.Flow, flow.Rule{ID: strconv.Itoa(i), Resource: strconv.Itoa(i), Threshold: limits[i], Interval: intervals[i], Buckets: 1, Window: flow.Ring})
		}
		at := start
		var calls []replay.Call
		taken := make(map[string]float64)
		want := make([]int64, 2)
		for range 500 {
			at = at.Add(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
			i := random.IntN(2)
			calls = append(calls, replay.Call{At: at, Resource: strconv.Itoa(i)})
			window := fmt.Sprint(i, at.Truncate(intervals[i]))
			if taken[window] == limits[i] {
				want[i]++
			} else {
				taken[window]++
			}
		}
		report := played(t, set, slices.Values(calls))
		require.Equal(t, want, []int64{report.Rules[0].Refused, report.Rules[1].Refused})
	}
}
