package hotspot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// keyMeter has what a key has got, and says naively whether it may have more.
type keyMeter struct {
	rule   *hotspot.Rule
	limit  float64
	rate   float64         // that the bucket fills at: under a limit of 0, that of any key before
	passed []time.Duration // of each unit, or the end of its wait
	used   float64         // missing in the token bucket
	at     time.Duration
	held   int
}

func (m *keyMeter) set(limit, quickest float64) {
	if m.limit, m.rate = limit, limit; limit == 0 {
		m.rate = quickest
	}
}

// to moves the bucket to a time.
func (m *keyMeter) to(now time.Duration) {
	m.used, m.at = max(0, m.used-(now-m.at).Seconds()*m.rate), now
}

// took counts a unit, and returns what is wrong with it.
func (m *keyMeter) took(now, wait time.Duration) (wrong string) {
	defer func() { m.passed = append(m.passed, now+wait) }()
	switch {
	case m.rule.Metric == hotspot.Concurrency:
		if m.held++; m.held > int(m.limit) {
			return "in flight"
		}
	case m.rule.Behavior == hotspot.TokenBucket:
		m.to(now)
		if m.used++; m.used > float64(m.rule.Burst)+1+1e-6 {
			return "more tokens than it has"
		}
	case m.rule.Behavior == hotspot.Throttle:
		if n := len(m.passed); n > 0 && m.passed[n-1] > now+wait-time.Duration(float64(time.Second)/m.limit)+time.Microsecond {
			return "too soon after the turn before"
		}
	default:
		sum := 1
		for _, at := range m.passed {
			if at > now-time.Second {
				sum++
			}
		}
		if most := int(m.limit); sum > most {
			return fmt.Sprintf("%d in a second", sum)
		}
	}
	if m.limit == 0 {
		return "units of a limit of 0"
	}
	return ""
}

// However few keys a rule tracks, no key gets more than its own limit, whether an exception with a star
// makes that larger or smaller: keys that share a limit only get less.
func TestKeysThatFindNoRoomGetNoMore(t *testing.T) {
	r := random(t)
	passed, overflowed := 0, int64(0)
	for range figure.Size(300, 300, 3_000, 30_000) {
		rule := hotspot.Rule{ID: "r", Keys: []string{"param tenant", "param user"}, MaxValues: 1 + r.IntN(4)}
		switch r.IntN(4) {
		case 1:
			rule.Metric = hotspot.Concurrency
		case 2:
			rule.Behavior, rule.MaxWait = hotspot.Throttle, time.Second
		case 3:
			rule.Behavior, rule.Burst = hotspot.TokenBucket, r.IntN(4)
		}
		meters := make(map[[2]string]*keyMeter)
		quickest := 0.0
		draw := func() {
			rule.Threshold, rule.Exceptions = []float64{0, 1, 2, 5, 9}[r.IntN(5)], nil
			for i := range 3 {
				if r.IntN(3) > 0 {
					rule.Exceptions = append(rule.Exceptions, named([]float64{0, 1, 3, 8, 20}[r.IntN(5)], fmt.Sprint("t", i), "*"))
				}
			}
			for _, x := range rule.Exceptions {
				quickest = max(quickest, x.Threshold)
			}
			quickest = max(quickest, rule.Threshold)
		}
		limit := func(tenant string) float64 {
			for _, x := range rule.Exceptions {
				if x.Values[0] == hotspot.ValueOf(tenant) {
					return x.Threshold
				}
			}
			return rule.Threshold
		}
		draw()
		g := newGuard(t, rule)
		now := time.Duration(0)
		type held struct {
			engine.Entry
			*keyMeter
		}
		var open []held
		for range 300 {
			switch n := r.IntN(60); {
			case n == 0:
				draw()
				if g.load(rule); rule.Behavior == hotspot.Throttle {
					clear(meters) // turns follow earlier ones as the limit was then
				}
				for key, m := range meters {
					m.to(now)
					m.set(limit(key[0]), quickest)
				}
			case n < 12:
				now += time.Duration(r.Int64N(int64(500 * ms)))
				g.at(now)
			case n < 20 && len(open) > 0:
				i := r.IntN(len(open))
				open[i].Exit()
				open[i].held--
				open[i], open = open[len(open)-1], open[:len(open)-1]
			default:
				key := [2]string{fmt.Sprint("t", r.IntN(4)), fmt.Sprint("u", r.IntN(5))}
				m := meters[key]
				if m == nil {
					m = &keyMeter{rule: &rule, at: now}
					m.set(limit(key[0]), quickest)
					meters[key] = m
				}
				e, wait, err := g.waits(engine.Param("tenant", key[0]), engine.Param("user", key[1]))
				if err != nil {
					continue
				}
				passed++
				require.Empty(t, m.took(now, wait), "%v, whose limit is %v, of %+v", key, m.limit, rule)
				open = append(open, held{e, m})
			}
		}
		for _, e := range open {
			e.Exit()
		}
		overflowed += g.details("r").Overflowed
	}
	t.Log(passed, "passed,", overflowed, "found no room")
	assert.Greater(t, overflowed, int64(passed)/4)
}

// named returns an exception for a key.
func named(threshold float64, parts ...any) (x hotspot.Exception) {
	for _, v := range parts {
		x.Values = append(x.Values, hotspot.ValueOf(v))
	}
	x.Threshold = threshold
	return x
}
