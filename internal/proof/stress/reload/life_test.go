package reload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// before has rules of every family, each with state to lose.
const before = `
authority: [{id: who, resource: orders, origins: [app, web]}]
system: [{id: house, metric: qps, threshold: 60, interval: 10s}, {id: busy, metric: cpu, threshold: 0.9}]
hotspot:
  - {id: user, resource: orders, param: user, threshold: 4, interval: 10s}
  - {id: users in flight, resource: carts, param: user, threshold: 2, metric: concurrency}
flow:
  - {id: rate, resource: orders, threshold: 25, interval: 10s}
  - {id: of app, resource: orders, origin: app, threshold: 20, interval: 10s}
  - {id: line, resource: stock, threshold: 10, behavior: throttle, maxWait: 300ms}
  - {id: warm, resource: stock, threshold: 30, interval: 10s, behavior: warmUp}
  - {id: any, resource: '.*', regex: true, threshold: 5, metric: concurrency}
  - {id: memory, resource: carts, threshold: 40, interval: 10s, memoryThreshold: 10, lowMemory: 0.5, highMemory: 0.9}
isolation: [{id: room, resource: orders, threshold: 4}, {id: trial, resource: carts, threshold: 1, mode: shadow}]
adaptive: [{id: learn, resource: '.*', regex: true, start: 4, ceiling: 6, window: 100ms}]
breaker:
  - {id: trips, resource: carts, strategy: errorCount, threshold: 6, minCalls: 1, interval: 10s, recovery: 3s, probes: 2}
  - {id: falls, resource: '*', strategy: errorRatio, threshold: 0.6, minCalls: 5, recovery: 2s}
outlier: [{id: endpoints, resource: orders, threshold: 0.5, minCalls: 2, maxEjected: 0.5, recovery: 4s}]
`

// after has every one of them changed, renamed or removed, and new ones.
const after = `
authority: [{id: who, resource: orders, origins: [app]}]
system: [{id: house, metric: qps, threshold: 30, interval: 20s}, {id: busy, metric: cpu, threshold: 0.7}, {id: all, metric: concurrency, threshold: 9}]
hotspot:
  - {id: user, resource: orders, param: user, threshold: 3, interval: 20s, maxValues: 50, exceptions: [{value: u1, threshold: 9}]}
  - {id: users in flight, resource: carts, param: user, threshold: 1, metric: concurrency}
flow:
  - {id: rate, resource: orders, threshold: 40, interval: 20s}
  - {id: of web, resource: orders, origin: web, threshold: 3, interval: 5s}
  - {id: line, resource: stock, threshold: 20, behavior: throttle, maxWait: 100ms}
  - {id: warm, resource: stock, threshold: 30, interval: 5s, behavior: warmUp}
  - {id: any other, resource: '.*', regex: true, threshold: 3, metric: concurrency}
  - {id: memory, resource: carts, threshold: 60, interval: 5s, memoryThreshold: 20, lowMemory: 0.2, highMemory: 0.9}
  - {id: beside, resource: carts, threshold: 2, interval: 10s, relation: associated, ref: fresh}
isolation: [{id: room, resource: orders, threshold: 2}, {id: trial, resource: carts, threshold: 3}, {id: new, resource: fresh, threshold: 1}]
adaptive: [{id: renamed, resource: '.*', regex: true, start: 2, ceiling: 3, window: 200ms}]
breaker:
  - {id: trips, resource: carts, strategy: errorCount, threshold: 3, minCalls: 1, interval: 20s, recovery: 9s, probes: 1}
  - {id: falls, resource: '*', strategy: errorRatio, threshold: 0.2, minCalls: 2, recovery: 9s}
outlier: [{id: endpoints, resource: orders, threshold: 0.2, minCalls: 1, maxEjected: 0.3, recovery: 9s}, {id: more, resource: '.*', regex: true, threshold: 0.9}]
`

var errService = errors.New("the service failed")

// foreign is the user's code: a clock and a machine. One call to them panics or ends its goroutine.
type foreign struct {
	*clocks.Manual
	calls    int // until the accident; 0 is never
	accident func()
}

func (f *foreign) called() {
	if f.calls > 0 {
		if f.calls--; f.calls == 0 {
			f.accident()
		}
	}
}

func (f *foreign) Now() int64 {
	f.called()
	return f.Manual.Now()
}

func (f *foreign) Load(int64) (float64, error) { f.called(); return 1, nil }
func (f *foreign) CPU(int64) (float64, error)  { f.called(); return 0.3, nil }
func (f *foreign) Memory(int64) (host.Memory, error) {
	f.called()
	return host.Memory{Used: 6 << 20, Limit: 10 << 20}, nil
}

// life is a Guard and its results.
type life struct {
	*api.Guard
	t     *testing.T
	from  *foreign
	rand  *rand.Rand
	open  []api.Admitted
	story []string
}

func newLife(t *testing.T, seed uint64, accident func()) *life {
	t.Helper()
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepRecord)
	f := &foreign{Manual: clock, accident: accident}
	g, err := api.New(api.Config{Clock: f, Host: f, Logger: silent, Caps: node.Caps{Resources: 2}})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	l := &life{Guard: g, t: t, from: f, rand: rand.New(rand.NewPCG(seed, 1))}
	require.NoError(t, g.LoadRules(parsed(t, before)))
	return l
}

func parsed(t *testing.T, file string) rules.Set {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(file))
	require.NoError(t, err)
	return set
}

// live makes calls of all kinds, and ends some.
func (l *life) live(steps int) {
	resources := []string{"orders", "carts", "stock", "other", "another", "one more"}
	for range steps {
		switch l.rand.IntN(8) {
		case 0:
			l.from.Advance(time.Duration(l.rand.IntN(400)) * ms)
			continue
		case 1, 2:
			if len(l.open) > 0 {
				i := l.rand.IntN(len(l.open))
				if l.rand.IntN(3) == 0 {
					l.open[i].Fail(errService)
				}
				l.open[i].Exit()
				l.open = append(l.open[:i], l.open[i+1:]...)
			}
			continue
		}
		name := resources[l.rand.IntN(len(resources))]
		opts := []engine.Option{api.Param("user", "u"+strconv.Itoa(l.rand.IntN(4)))}
		for _, o := range []engine.Option{api.Inbound(), api.Prioritized(), api.Units(2), api.Endpoint("c" + strconv.Itoa(l.rand.IntN(4)))} {
			if l.rand.IntN(2) == 0 {
				opts = append(opts, o)
			}
		}
		origin := []string{"app", "app", "web", "web", "other"}[l.rand.IntN(5)]
		e, err := l.Entry(from(l.t.Context(), "front", origin), name, opts...)
		if err != nil {
			l.story = append(l.story, err.Error())
			continue
		}
		l.story = append(l.story, name)
		if l.rand.IntN(3) > 0 {
			if l.rand.IntN(4) == 0 {
				e.Fail(errService)
			}
			e.Exit()
		} else {
			l.open = append(l.open, e)
		}
	}
}

func (l *life) end() {
	for _, e := range l.open {
		e.Exit()
	}
}

// pointers matches addresses of families' stats: their contents are compared as JSON.
var pointers = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// state returns everything visible of the engine, except the idle node of a resource that only a
// refused set names.
func (l *life) state() (all []string) {
	note := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	note("revision %d: %+v", l.Engine().Rules().Revision, l.Rules())
	tree := l.Tree()
	tree.Caps.Resources.Used = 0
	tree.Caps.Calls.Used = 0
	note("%s", pointers.ReplaceAllString(fmt.Sprintf("%+v", tree), "pointer"))
	text, err := json.Marshal(tree) // including the families' stats of their rules
	note("%s, %v", text, err)
	for _, b := range l.Breakers() {
		note("%+v", b)
	}
	note("ejected %v", l.Ejected("orders"))
	nodes := make(map[string][]string)
	now := l.from.Manual.Now()
	books.EachNode(l.Engine(), func(name string, n *node.StatisticNode) {
		var meters []string
		for _, w := range n.Meters().Windows() {
			meters = append(meters, fmt.Sprintf("%v %v: %d, %d", w.Shape, w.Era, w.Sum(now), w.Waiting(now)))
		}
		for _, g := range n.Meters().Semaphores() {
			meters = append(meters, fmt.Sprintf("semaphore: %d, %d", g.InUse(), g.Queued()))
		}
		if name != "fresh" {
			nodes[name] = meters
		}
	})
	note("%v", nodes)
	return all
}

// attempt loads rules, and reports whether the load completed.
func (l *life) attempt(set rules.Set) (loaded bool) {
	done := make(chan struct{})
	go func() { // which the accident may end
		defer close(done)
		defer func() { _ = recover() }()
		if err := l.LoadRules(set); err != nil {
			l.t.Error(err)
		}
		loaded = true
	}()
	<-done
	return loaded
}
