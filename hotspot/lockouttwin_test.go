package hotspot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// locked is a naive account of the lockouts of one value.
type locked struct {
	trial.NoticeTwin
	refused map[int64]bool // numbers of intervals
	until   int64
}

// refuse notes a refusal, and reports whether it begins a lockout.
func (m *locked) refuse(now int64, x hotspot.Lockout) bool {
	n := now / int64(m.Interval)
	if now < m.until || m.refused[n] {
		return false
	}
	m.refused[n] = true
	for i := range int64(x.After) {
		if !m.refused[n-i] {
			return false
		}
	}
	m.until, m.refused = now+int64(x.For), map[int64]bool{}
	return true
}

// A value is locked out once it was refused in enough intervals in a row, until the lockout ends, by the
// account of a naive twin: over any traffic, refusals by others and reloads.
func TestLockoutsAreThoseOfTheTwin(t *testing.T) {
	r := random(t)
	calls, lockouts, refusals := 0, 0, 0
	for range figure.Size(200, 200, 3_000, 30_000) {
		rule := hotspot.Rule{ID: "r", Param: "user", Interval: time.Second}
		draw := func() {
			rule.Threshold = float64(r.IntN(5))
			rule.Lockout = hotspot.Lockout{After: 1 + r.IntN(4), For: time.Duration(10+r.IntN(5000)) * ms}
		}
		draw()
		twins := make(map[string]*locked)
		for i := range 3 {
			twins[fmt.Sprint("u", i)] = &locked{NoticeTwin: trial.NoticeTwin{Interval: time.Second, Buckets: 10, Counting: 11}, refused: map[int64]bool{}}
		}
		g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(trial.TakesAndRefuses{}, engine.After("hotspot"))}, rule)
		now, begun := start, 0
		for range 400 {
			switch k := r.IntN(60); {
			case k == 0:
				draw()
				g.load(rule)
			case k < 12:
				now = now.Add(time.Duration(r.Int64N(int64(700 * ms))))
				g.clock.AdvanceTo(now.UnixNano())
			default:
				user, n, refused := fmt.Sprint("u", r.IntN(3)), 1+r.Int64N(3), r.IntN(6) == 0
				m, at := twins[user], now.UnixNano()
				opts := []engine.Option{engine.Units(int(n)), engine.Param("user", user)}
				x, err := g.Explain(t.Context(), "orders", opts)
				require.NoError(t, err)
				if refused {
					opts = append(opts, engine.Param("refuse", true))
				}
				fits := at >= m.until && rule.Threshold > 0 && m.Used(at)+n <= int64(rule.Threshold)
				e, err := g.Enter(t.Context(), "orders", opts)
				calls++
				require.Equal(t, fits && !refused, err == nil)
				require.Equal(t, fits, x.Rules[0].Outcome == core.Passes, "%v", x)
				if err == nil {
					m.Take(at, n)
					e.Exit()
				}
				if fits {
					continue
				}
				refusals++
				if rule.Threshold > 0 && at < m.until {
					require.Contains(t, x.Rules[0].Why, "locked out for another ")
				}
				if m.refuse(at, rule.Lockout) {
					begun++
				}
				wait, known := refusalOf(t, err).RetryAfter()
				require.Equal(t, rule.Threshold > 0, known)
				if known && m.until > at {
					require.GreaterOrEqual(t, wait, time.Duration(m.until-at))
				}
				if known && m.until > at+int64(2*time.Second) {
					require.Equal(t, wait, time.Duration(m.until-at), "its end")
				}
			}
		}
		d, held := g.details("r"), 0
		for _, m := range twins {
			if now.UnixNano() < m.until {
				held++
			}
		}
		require.Equal(t, []any{held, held, int64(begun), int64(0)}, []any{d.Locked, len(d.LockedValues), d.Lockouts, d.LockoutsMissed})
		lockouts += begun
	}
	t.Log(calls, "calls,", refusals, "refusals,", lockouts, "lockouts")
	assert.Greater(t, lockouts, 200)
}

// A lockout survives a crowd of other values and a change of the limit; half of the table can be locked
// out, and the other half serves other values. It ends when it was to end, though calls came meanwhile.
func TestLockoutsAreBoundedAndEnd(t *testing.T) {
	for _, rule := range []hotspot.Rule{{}, {Behavior: hotspot.TokenBucket}, {Behavior: hotspot.Throttle, MaxWait: ms}, {Window: hotspot.Refill}, {Unit: "tokens", Estimate: 1}} {
		rule.ID, rule.Param, rule.Threshold, rule.MaxValues, rule.Lockout = "r", "user", 1, 8, hotspot.Lockout{After: 2, For: time.Minute}
		g := newGuard(t, rule)
		for second := range 2 {
			g.at(time.Duration(second) * time.Second)
			for user := range 8 {
				_, _ = g.outcome(engine.Param("user", user)), g.outcome(engine.Param("user", user))
				_ = g.outcome(engine.Param("user", user))
			}
		}
		d := g.details("r")
		assert.Equal(t, []any{4, int64(4), int64(4)}, []any{d.Locked, d.Lockouts, d.LockoutsMissed}, "%+v", rule)
		assert.Contains(t, d.Lines(start.Add(time.Second))[1], "4 locked out, 4 lockouts so far: ")
		g.at(5 * time.Second)
		passed := 0
		for user := range 100 {
			if g.outcome(engine.Param("user", user)) != "block" {
				passed++
			}
		}
		assert.Positive(t, passed)
		rule.Threshold = 2
		g.load(rule)
		locked := d.LockedValues[0]
		var user int
		_, err := fmt.Sscan(locked.Value, &user)
		require.NoError(t, err)
		g.at(60*time.Second + 999*ms)
		assert.Equal(t, "block", g.outcome(engine.Param("user", user)))
		g.at(61 * time.Second)
		assert.Equal(t, "pass", g.outcome(engine.Param("user", user)))
		assert.Zero(t, g.details("r").Locked)
	}
}
