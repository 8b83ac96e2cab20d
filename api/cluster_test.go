package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/rules"
)

// outage is a store that can be made unreachable.
type outage struct {
	*cluster.Memory
	away atomic.Bool
}

var errAway = errors.New("away")

func (s *outage) Start(ctx context.Context, batch []store.Command, done func()) {
	if !s.away.Load() {
		s.Memory.Start(ctx, batch, done)
		return
	}
	for _, c := range batch {
		c.Result().Err = errAway
	}
	done()
}

// testCluster is a number of Guards that share limits, on one clock and one store.
type testCluster struct {
	*testing.T
	clock  *api.ManualClock
	store  store.Store
	guards []*api.Guard

	members int // expected
	limits  func(ctx context.Context, rule string, key argument.Value) (float64, time.Duration, error)
}

func newCluster(t *testing.T, n int, set ...flow.Rule) *testCluster {
	return newClusterOf(t, n, api.RuleSet{Flow: set})
}

func newClusterOf(t *testing.T, n int, set api.RuleSet) *testCluster {
	f := &testCluster{T: t, clock: clocks.NewManual(time.Unix(1_800_000_000, 0))}
	f.clock.SetSleep(clocks.SleepAdvance)
	f.store = cluster.NewMemory(f.clock)
	for range n {
		f.joinWith(set)
	}
	return f
}

func (f *testCluster) join(set ...flow.Rule) *api.Guard {
	f.Helper()
	return f.joinWith(api.RuleSet{Flow: set})
}

func (f *testCluster) joinWith(set api.RuleSet) *api.Guard {
	f.Helper()
	g, err := api.New(api.Config{
		Clock: f.clock, Logger: slog.New(slog.DiscardHandler), Limits: f.limits,
		Cluster: cluster.Config{Store: f.store, Namespace: "test", Members: f.members, Seed: uint64(len(f.guards) + 1)},
	})
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, g.Close()) })
	books.Keep(f, g.Engine())
	require.NoError(f, g.LoadRules(set))
	f.guards = append(f.guards, g)
	return g
}

// call makes a call at a Guard and reports whether it ran.
func (f *testCluster) call(g *api.Guard, opts ...api.Option) bool {
	entry, err := g.Entry(f.Context(), "orders", opts...)
	entry.Exit()
	return err == nil
}

// pour makes calls at all Guards in turn, and returns how many of each ran.
func (f *testCluster) pour(rounds int) (ran []int) {
	ran = make([]int, len(f.guards))
	for range rounds {
		for i, g := range f.guards {
			if f.call(g) {
				ran[i]++
			}
		}
	}
	return ran
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

var orders = flow.Rule{ID: "orders", Resource: "orders", Threshold: 100, Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}}

// Any number of members admit no more than the limit in any interval, and not much less.
func TestMembersShareAFlowLimit(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			f := newCluster(t, n, orders)
			var ran []int // in steps of 10 ms
			for range 500 {
				ran = append(ran, sum(f.pour(1)))
				f.clock.Advance(10 * time.Millisecond)
			}
			window, most, total := 0, 0, 0
			for i, x := range ran {
				window, total = window+x, total+x
				if i >= 100 {
					window -= ran[i-100]
				}
				most = max(most, window)
			}
			assert.LessOrEqual(t, most, 100)
			assert.GreaterOrEqual(t, total, min(100, n*100)*4, "in five seconds")
		})
	}
}

// While the store is unreachable each rule follows its onFailure, and no call waits long.
func TestStoreOfAClusterIsAway(t *testing.T) {
	for on, want := range map[cluster.OnFailure][2]int{
		cluster.Closed: {0, 0}, cluster.Open: {300, 300}, cluster.Local: {45, 50}, // half of the limit each
	} {
		t.Run(on.String(), func(t *testing.T) {
			rule := orders
			rule.Cluster.OnFailure = on
			f := newCluster(t, 0)
			store := &outage{Memory: cluster.NewMemory(f.clock)}
			f.store = store
			store.away.Store(true)
			f.members = 2
			f.join(rule)
			f.clock.SetSleep(clocks.SleepAdvance)
			f.pour(20) // until the members notice
			f.clock.Advance(3 * time.Second)
			slept := len(f.clock.Slept())
			ran := f.pour(300)[0]
			assert.GreaterOrEqual(t, ran, want[0])
			assert.LessOrEqual(t, ran, want[1])
			assert.Len(t, f.clock.Slept(), slept, "nobody waits for it")
			assert.Contains(t, f.line("orders"), `store away ("away")`, "and why")
		})
	}
}

// line returns the tree's line about a rule.
func (f *testCluster) line(rule string) (text string) {
	f.Helper()
	for _, r := range f.guards[0].Engine().Rules().RuleStats() {
		if r.ID == rule && r.Details != nil {
			text += fmt.Sprint(r.Details.Lines(time.Unix(0, f.clock.Now())))
		}
	}
	return text
}

// The tree shows a rule's shared state.
func TestFiguresOfASharedLimit(t *testing.T) {
	f := newCluster(t, 2, orders)
	f.pour(100)
	rule := f.guards[0].Engine().Rules().RuleStats()[0]
	figures := rule.Details.(core.SharedStats)
	assert.Positive(t, figures.Requests)
	assert.Positive(t, figures.Refused)
	assert.LessOrEqual(t, figures.Refused, rule.Refused, "a call that waits for the store isn't refused without it")
	assert.Equal(t, "up", figures.Store)
	assert.Contains(t, f.line("orders"), "store up")
}

// A guard without a store gets an error that says so, for a file with its position.
func TestASharedLimitNeedsAStore(t *testing.T) {
	g := newGuard(t, api.Config{})
	err := g.LoadRules(api.RuleSet{Flow: []flow.Rule{orders}})
	require.ErrorContains(t, err, "flow[0].cluster: needs a store")
	require.ErrorContains(t, err, "api.Config.Cluster.Store")
	off := orders
	off.Mode = api.Off
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{off}}))

	set, err := api.ParseRules("rules.yaml", []byte("cluster: {redis: rediss://cache:6379/0}\nflow:\n  - {id: orders, resource: orders, threshold: 5, cluster: {}}\n"))
	require.NoError(t, err)
	assert.Equal(t, cluster.Rule{Scope: cluster.Global}, set.Flow[0].Cluster)
	require.ErrorContains(t, g.LoadRules(set), `cluster.redis: has the scheme "rediss://", which no configured store handles: add one to api.Config.Stores`)
}

// closer is a store that records that it was closed.
type closer struct {
	store.Store
	closed *int
}

func (c closer) Close() error {
	*c.closed++
	return nil
}

// A rule file names the store, whose password is in the environment; the Guard opens it while rules
// need it.
func TestAStoreThatAFileNames(t *testing.T) {
	t.Setenv("ORDERS_PASSWORD", "s3cr:et")
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	var opened []string
	closed := 0
	g := newGuard(t, api.Config{Clock: clock, Stores: map[string]func(string) (store.Store, error){
		"rediss": func(url string) (store.Store, error) {
			opened = append(opened, url)
			return closer{cluster.NewMemory(clock), &closed}, nil
		},
	}})
	load := func(text string) error {
		set, err := api.ParseRules("rules.yaml", []byte(text))
		if err != nil {
			return err
		}
		return g.LoadRules(set)
	}
	const store, rule = "cluster: {redis: 'rediss://app:$ORDERS_PASSWORD@cache:6379/0', namespace: shop, members: 3}\n",
		"flow: [{id: orders, resource: orders, threshold: 5, cluster: {}}]\n"
	require.NoError(t, load(store+"flow: []\n"))
	assert.Empty(t, opened, "no rule needs it")
	require.NoError(t, load(store+rule))
	require.NoError(t, load(store+"flow: [{id: orders, resource: orders, threshold: 6, cluster: {}}]\n"))
	assert.Equal(t, []string{"rediss://app:s3cr%3Aet@cache:6379/0"}, opened)
	assert.Error(t, load(store+"flow: [{id: orders, resource: orders, threshold: 5, cluster: {}}, {id: a, resource: a, threshold: 1, lowMemory: 0.5}]\n"))
	assert.Error(t, load("cluster: {redis: 'rediss://other:6379/0'}\n"+rule+"breaker: [{resource: a, strategy: slowRatio, threshold: 1}]\n"))
	assert.Zero(t, closed, "what failed changes nothing")
	require.NoError(t, load("cluster: {redis: 'rediss://other:6379/0'}\n"+rule))
	assert.Equal(t, 1, closed)
	assert.Len(t, opened, 2)
	require.NoError(t, load("flow: []\n"))
	assert.Equal(t, 2, closed)

	for text, want := range map[string]string{
		"cluster: {redis: 'rediss://:secret@cache'}\nflow: []\n":                                "contains a password",
		"cluster: {redis: cache}\nflow: []\n":                                                   "is not a URL",
		"cluster: {members: -1}\nflow: []\n":                                                    "is -1",
		"cluster: {namespace: 'a{b}'}\nflow: []\n":                                              "has a brace",
		"cluster: {redis: 'redis://cache'}\n" + rule:                                            "api.Config.Stores has rediss://",
		"cluster: {redis: 'rediss://:$ORDERS_NOT_THERE@cache'}\n" + rule:                        "names the environment variable ORDERS_NOT_THERE",
		"cluster: [{members: 1}, {members: 2}]\nflow: []\n":                                     `"cluster" is already the id`,
		"flow: [{resource: a, threshold: 1, cluster: {}}]\n":                                    "flow[0].id: is required by cluster",
		"flow: [{id: a, resource: a, threshold: 1, cluster: {scope: none, onFailure: open}}]\n": "flow[0].cluster.scope: is none",
		"flow: [{id: a, resource: a, threshold: 1, cluster: global}]\n":                         "must be a mapping, as in `{scope: global}`",
		"flow: [{id: a, resource: a, threshold: 1, interval: 100ms, cluster: {}}]\n":            "buckets: last 10ms each",
		"flow: [{id: a, resource: a, threshold: 2e9, cluster: {}}]\n":                           "in a cluster must be at most",
		"flow: [{id: a, resource: a, threshold: 1, cluster: {timeout: 2s}}]\n":                  "flow[0].cluster.timeout: is 2s",
		"flow: [{id: a, resource: a, threshold: 1, behavior: warmUp, cluster: {}}]\n":           "each process warms up on its own",
	} {
		assert.ErrorContains(t, load(text), want, text)
	}
}

// If only the cluster settings of a rule file change, each rule that shares a limit moves to the
// new member, and continues from the store's counts.
func TestRulesThatStayJoinAgain(t *testing.T) {
	const shares = "cluster: {onFailure: closed}"
	const top = "{redis: 'redis://first', namespace: shop, members: 1}"
	for name, text := range map[string]string{
		"flow window":        "flow: [{id: r, resource: orders, threshold: 10, " + shares + "}]",
		"flow by caller":     "flow: [{id: r, resource: orders, threshold: 10, origin: other, " + shares + "}]",
		"flow throttle":      "flow: [{id: r, resource: orders, threshold: 100, behavior: throttle, maxWait: 1s, " + shares + "}]",
		"flow concurrency":   "flow: [{id: r, resource: orders, threshold: 10, metric: concurrency, " + shares + "}]",
		"isolation":          "isolation: [{id: r, resource: orders, threshold: 10, " + shares + "}]",
		"value window":       "hotspot: [{id: r, resource: orders, param: user, threshold: 10, " + shares + "}]",
		"value throttle":     "hotspot: [{id: r, resource: orders, param: user, threshold: 100, behavior: throttle, maxWait: 1s, " + shares + "}]",
		"value concurrency":  "hotspot: [{id: r, resource: orders, param: user, threshold: 10, metric: concurrency, " + shares + "}]",
		"in shadow mode":     "flow: [{id: r, resource: orders, threshold: 10, mode: shadow, " + shares + "}]",
		"regular expression": "flow: [{id: r, resource: 'o.*', match: regex, threshold: 10, " + shares + "}]",
	} {
		for what, other := range map[string]string{
			"members":   "{redis: 'redis://first', namespace: shop, members: 2}",
			"namespace": "{redis: 'redis://first', namespace: other, members: 1}",
			"store":     "{redis: 'redis://second', namespace: shop, members: 1}",
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
				clock.SetSleep(clocks.SleepAdvance)
				stores := map[string]store.Store{"redis://first": cluster.NewMemory(clock), "redis://second": cluster.NewMemory(clock)}
				g := newGuard(t, api.Config{Clock: clock, Stores: map[string]func(string) (store.Store, error){
					"redis": func(url string) (store.Store, error) { return stores[url], nil },
				}})
				load := func(top string) {
					t.Helper()
					set, err := api.ParseRules("rules.yaml", []byte("cluster: "+top+"\n"+text+"\n"))
					require.NoError(t, err)
					require.NoError(t, g.LoadRules(set))
				}
				ran := func(calls int) (n int) {
					for range calls {
						entry, err := g.Entry(engine.WithOrigin(t.Context(), "app"), "orders", api.Param("user", 7))
						entry.Exit()
						if err == nil {
							n++
						}
					}
					return n
				}
				load(top)
				require.Equal(t, 6, ran(6))
				load(other)
				if strings.Contains(name, "window") && what == "members" {
					assert.LessOrEqual(t, ran(20), 4, "what was admitted before counts")
				}
				for _, next := range []string{other, top, other} {
					load(next)
					clock.Advance(3 * time.Second)
					assert.Equal(t, 6, ran(6), next)
					lines := g.Engine().Rules().RuleStats()[0].Details.Lines(time.Time{})
					assert.Contains(t, lines[len(lines)-1], "store up", next)
				}
			})
		}
	}
}

// stuck is a store that never replies, and ignores its context.
type stuck struct{ done chan struct{} }

func (stuck) Shard(string) int { return 0 }

func (s stuck) Do(context.Context, []store.Command) { <-s.done }

// A store that never returns blocks neither loading rules nor closing a Guard.
func TestAStoreThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := stuck{make(chan struct{})}
		g, err := api.New(api.Config{Stores: map[string]func(string) (store.Store, error){
			"stuck": func(string) (store.Store, error) { return hung, nil },
		}})
		require.NoError(t, err)
		alone := orders
		alone.Cluster.OnFailure = cluster.Local
		for _, at := range []string{"stuck://a", "stuck://b"} {
			set := api.RuleSet{Cluster: []rules.Cluster{{Redis: at, Members: 2}}, Flow: []flow.Rule{alone}}
			require.NoError(t, g.LoadRules(set))
			entry, err := g.Entry(t.Context(), "orders")
			require.NoError(t, err, "its share")
			entry.Exit()
		}
		require.NoError(t, g.Close())
		close(hung.done)
	})
}

// A new threshold takes effect at once, and admitted calls still count, even in windows of another
// shape and for a rule that was local before.
func TestSharedLimitsAreReloaded(t *testing.T) {
	f := newCluster(t, 2, orders)
	f.pour(100)
	load := func(r flow.Rule) {
		for _, g := range f.guards {
			require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{r}}))
		}
	}
	more := orders
	more.Threshold = 150
	load(more)
	f.clock.Advance(150 * time.Millisecond)
	ran := sum(f.pour(100))
	assert.LessOrEqual(t, ran, 50)
	assert.Positive(t, ran)

	f.clock.Advance(2 * time.Second)
	alone := orders
	alone.Cluster = cluster.Rule{}
	load(alone)
	assert.Equal(t, 200, sum(f.pour(150)), "each has its own")
	f.clock.Advance(2 * time.Second)
	load(orders)
	assert.LessOrEqual(t, sum(f.pour(150)), 100)
}

// A rule in shadow mode doesn't share with enforced rules, refuses no call, and counts the calls it
// would have refused.
func TestASharedLimitInShadowMode(t *testing.T) {
	shadow := orders
	shadow.Mode = api.Shadow
	f := newCluster(t, 2, shadow)
	for range 3 {
		assert.Equal(t, []int{100, 100}, f.pour(100))
		f.clock.Advance(100 * time.Millisecond)
	}
	figures := f.guards[0].Engine().Rules().RuleStats()[0]
	assert.Zero(t, figures.Refused)
	assert.Positive(t, figures.ShadowBlocked)
	assert.Empty(t, f.clock.Slept(), "no call waits for such a rule")
	f.join(orders)
	assert.Greater(t, f.pour(100)[2], 80)
}

// A call that takes from the lease doesn't allocate, nor does one that is refused without asking the
// store.
func TestASharedLimitAllocatesNothing(t *testing.T) {
	rule := orders
	for _, mode := range []api.Mode{api.Enforce, api.Shadow} {
		rule.Mode, rule.Threshold = mode, 1e6
		f := newCluster(t, 1, rule)
		for range 100 { // until leases match the demand
			f.pour(500)
			f.clock.Advance(5 * time.Millisecond)
		}
		race.AllocatesNothing(t, 100, func() { f.call(f.guards[0]) })
		rule.Threshold = 10
		f = newCluster(t, 1, rule)
		f.pour(100)
		race.AllocatesNothing(t, 100, func() { f.call(f.guards[0]) })
	}
}

// Explain reports the units at hand, without side effects.
func TestExplainASharedLimit(t *testing.T) {
	f := newCluster(t, 1, orders)
	x, err := f.guards[0].Explain(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Passes, x.Outcome)
	assert.Equal(t, "the cluster store would decide", x.Rules[0].Why)
	f.pour(200)
	before := f.line("orders")
	x, err = f.guards[0].Explain(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.False(t, x.Next.IsZero())
	assert.Equal(t, "units in 1s, on a lease", x.Rules[0].Measures[0].Of)
	assert.Equal(t, before, f.line("orders"))
}

// A refusal by a shared limit has a RetryAfter.
func TestRetryAfterOfASharedLimit(t *testing.T) {
	f := newCluster(t, 1, orders)
	f.pour(200)
	_, err := f.guards[0].Entry(t.Context(), "orders")
	var block *api.BlockError
	require.ErrorAs(t, err, &block)
	wait, known := block.RetryAfter()
	require.True(t, known)
	assert.Positive(t, wait)
	assert.LessOrEqual(t, wait, 1100*time.Millisecond)
}

// Each caller that no rule names has its own limit, which the members share.
func TestSharedLimitsOfCallers(t *testing.T) {
	rule := orders
	rule.Origin, rule.Threshold = flow.OriginOther, 40
	f := newCluster(t, 2, rule)
	ran := map[string]int{}
	for range 100 {
		for _, origin := range []string{"a", "b"} {
			for _, g := range f.guards {
				if entry, err := g.Entry(api.WithOrigin(t.Context(), origin), "orders"); err == nil {
					entry.Exit()
					ran[origin]++
				}
			}
		}
	}
	for _, n := range ran {
		assert.LessOrEqual(t, n, 40)
		assert.Greater(t, n, 30)
	}
	assert.Len(t, ran, 2)
}

// A call that waits for its turn holds no units during the wait: it fetches them afterwards, when
// they count.
func TestACallThatWaitsForAnotherRuleFetchesAfterwards(t *testing.T) {
	turns := flow.Rule{ID: "turns", Resource: "orders", Threshold: 2, Behavior: flow.Throttle, MaxWait: 10 * time.Second}
	f := newCluster(t, 1, orders, turns)
	require.True(t, f.call(f.guards[0]))
	began := f.clock.Now()
	for range 4 {
		require.True(t, f.call(f.guards[0]))
	}
	assert.Equal(t, 2*time.Second, time.Duration(f.clock.Now()-began))
}

// Units borrowed from a shared limit count in the upcoming bucket even for a rule on other callers
// of the same path, and even if the clock's Sleep returns early.
// known bug 193
func TestBorrowersOfASharedLimitBeforeTheCallersOfAPath(t *testing.T) {
	path := flow.Rule{ID: "path", Resource: "orders", Threshold: 2, Relation: flow.Chain, Ref: "web", Origin: "app", Window: flow.Ring}
	four := orders
	four.Threshold, four.Window = 4, flow.Ring
	f := newCluster(t, 1, path, four)
	f.clock.SetSleep(clocks.SleepRecord)
	began := f.clock.Now()
	call := func(at time.Duration, times int, context, origin string, opts ...api.Option) (ran int) {
		f.clock.AdvanceTo(began + int64(at))
		for range times {
			entry, err := f.guards[0].Entry(api.WithOrigin(api.WithContext(t.Context(), context), origin), "orders", opts...)
			entry.Exit()
			if err == nil {
				ran++
			}
		}
		return ran
	}
	const ms = time.Millisecond
	require.Equal(t, 4, call(100*ms, 4, "job", ""))
	require.Equal(t, 2, call(600*ms, 2, "web", "", api.Prioritized()))
	require.Len(t, f.clock.Slept(), 2, "they count from 1 s to 2 s")
	assert.Equal(t, 0, call(1500*ms, 2, "web", "app"))
	assert.Equal(t, 2, call(2000*ms, 3, "web", "app"))
}

// A prioritized call that does not fit waits for an upcoming bucket.
func TestPrioritizedCallsBorrowOfASharedLimit(t *testing.T) {
	f := newCluster(t, 1, orders)
	f.pour(150)
	f.clock.Advance(950 * time.Millisecond) // the first bucket ends soon
	require.False(t, f.call(f.guards[0]))
	began := f.clock.Now()
	require.True(t, f.call(f.guards[0], api.Prioritized()))
	waited := time.Duration(f.clock.Now() - began)
	assert.Positive(t, waited)
	assert.Less(t, waited, 500*time.Millisecond)
}
