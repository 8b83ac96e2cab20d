package upstream

import (
	"container/heap"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

var write = flag.Bool("write", false, "write the table of the simulation into its page")

// client simulates clients that make 300 calls a second of a server, each in up to three attempts
// about 100 ms apart, for ten minutes on a virtual clock. A refusal by the throttle is a failed
// attempt; one by the budget ends the call.
type client struct {
	g        *guard
	rand     *rand.Rand
	events   events
	capacity float64 // calls a second that the server accepts; all answers take 50 ms
	tokens   float64
	filled   int64
	over     bool // the ten minutes

	attempts, served int // that reached the server in the last five minutes, and were accepted
}

type event struct {
	at int64
	do func()
}

// events is a heap, by time.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (c *client) in(d time.Duration, do func()) {
	heap.Push(&c.events, event{c.g.Now() + int64(d), do})
}

const (
	simulated = 10 * time.Minute
	measured  = 5 * time.Minute
	callRate  = 300
)

// simulate returns the attempts that reach the server in a second, and the ones that it accepts.
func simulate(t *testing.T, capacity float64, rules ...Rule) (attempts, served float64) {
	c := &client{g: newGuard(t, rules...), rand: rand.New(rand.NewPCG(1, 2)), capacity: capacity}
	c.tokens, c.filled = capacity/10, c.g.Now()
	begin, end := c.g.Now()+int64(simulated-measured), c.g.Now()+int64(simulated)
	var arrive func()
	arrive = func() {
		if c.over {
			return
		}
		c.attempt(1, begin)
		c.in(time.Duration(c.rand.ExpFloat64()*float64(time.Second)/callRate), arrive)
	}
	arrive()
	for len(c.events) > 0 {
		e := heap.Pop(&c.events).(event)
		c.g.clock.AdvanceTo(e.at)
		c.over = e.at >= end
		e.do()
	}
	return float64(c.attempts) / measured.Seconds(), float64(c.served) / measured.Seconds()
}

func (c *client) attempt(n int, begin int64) {
	var opts []engine.Option
	if n > 1 {
		opts = []engine.Option{engine.Retry()}
	}
	again := func() {
		if n < 3 && !c.over {
			c.in(time.Duration((0.5+c.rand.Float64())*float64(100*ms)), func() { c.attempt(n+1, begin) })
		}
	}
	e, err := c.g.Enter(c.g.t.Context(), get, opts)
	switch {
	case errors.Is(err, core.ErrRetryBudget):
		return
	case err != nil:
		again()
		return
	}
	if c.g.Now() >= begin && !c.over {
		c.attempts++
	}
	if !c.accepts() {
		c.in(50*ms, func() {
			e.Fail(engine.Overloaded(errFull, 0))
			e.Exit()
			again()
		})
		return
	}
	if c.g.Now() >= begin && !c.over {
		c.served++
	}
	c.in(50*ms, e.Exit)
}

// accepts is a token bucket for 100 ms of the capacity.
func (c *client) accepts() bool {
	now := c.g.Now()
	c.tokens = min(c.capacity/10, c.tokens+c.capacity*float64(now-c.filled)/1e9)
	if c.filled = now; c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

// The page has the measured figures of clients in front of an overloaded, a dead and a healthy
// server. Both together send an overloaded server the least, and none costs it work done.
func TestAmplification(t *testing.T) {
	race.OneGoroutine(t)
	throttle, retries := Throttle{K: 2}, Retries{Least: 3}
	columns := []struct {
		name  string
		rules []Rule
	}{
		{"none", nil},
		{"throttle", []Rule{{Resource: get, Throttle: throttle}}},
		{"retries", []Rule{{Resource: get, Retries: retries}}},
		{"both", []Rule{{Resource: get, Throttle: throttle, Retries: retries}}},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-34s%10s%10s%10s%10s\n", "", "none", "throttle", "retries", "both")
	figures := make(map[string][]float64)
	for _, server := range []struct {
		name     string
		capacity float64
	}{{"100 calls/s", 100}, {"dead", 0}, {"healthy, 1000 calls/s", 1000}} {
		var attempts, served []float64
		for _, c := range columns {
			a, s := simulate(t, server.capacity, c.rules...)
			attempts, served = append(attempts, a), append(served, s)
		}
		for what, row := range map[string][]float64{"attempts": attempts, "served": served} {
			figures[server.name+": "+what] = row
		}
		for _, what := range []string{"attempts", "served"} {
			name := server.name + ": " + what
			fmt.Fprintf(&table, "  %-32s", name)
			for _, x := range figures[name] {
				fmt.Fprintf(&table, "%10.1f", x)
			}
			table.WriteByte('\n')
		}
	}
	t.Logf("\n%s", &table)
	over, dead := figures["100 calls/s: attempts"], figures["dead: attempts"]
	assert.Greater(t, over[0], 700.0)
	assert.Less(t, over[1], 240.0)
	assert.Less(t, over[2], 400.0)
	assert.LessOrEqual(t, over[3], over[1])
	for _, x := range figures["100 calls/s: served"] {
		assert.InDelta(t, 100, x, 3)
	}
	assert.InDelta(t, 900, dead[0], 20)
	assert.InDelta(t, 1, dead[1], 0.05)
	assert.InDelta(t, 1, dead[3], 0.05)
	for _, x := range figures["healthy, 1000 calls/s: attempts"] {
		assert.InDelta(t, figures["healthy, 1000 calls/s: attempts"][0], x, 1e-9)
	}
	const page, name = "../docs/rules/upstream.md", "amplification"
	text := "\n```text\n" + table.String() + "```\n\n"
	if *write {
		require.NoError(t, tables.Keep(page, name, text))
	}
	kept, err := tables.Kept(page, name)
	require.NoError(t, err)
	assert.Equal(t, kept, text, "go test ./upstream -run TestAmplification -args -write")
}
