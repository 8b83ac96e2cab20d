package api_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/isolation"
)

// Streams of random chunks run beside each other, with a Cost, an estimate or neither. Each asks for
// more only when its reservation and its grants are used up, a quarter of the reservation at a time,
// and a refusal means that there was no room for that. In the end each has used what it counted.
func TestMetersAreTheirTwins(t *testing.T) {
	r := chance.Source(t)
	for range figure.Size(50, 300, 10_000, 100_000) {
		const limit = 1000
		rule := flow.Rule{Resource: "chat", Unit: "tokens", Threshold: limit, Interval: time.Hour}
		if r.IntN(2) == 0 {
			rule.Estimate = float64(1 + r.IntN(100))
		}
		g := newGuard(t, api.Config{Clock: api.NewManualClock(time.Unix(1_800_000_000, 0))}, rule)
		type stream struct {
			api.Admitted
			meter                   *api.Meter
			reserved, granted, used int64
		}
		var open []*stream
		taken, used := int64(0), int64(0)
		finish := func(i int) {
			s := open[i]
			s.meter.Settle()
			s.meter.Settle()
			require.ErrorIs(t, s.meter.Add(t.Context(), 1), api.ErrExited)
			require.Equal(t, s.used, s.meter.Used())
			s.Exit()
			if s.granted == 0 {
				s.used = 0 // no rule has reserved anything
			}
			taken += s.used - s.granted
			used += s.used
			open = append(open[:i], open[i+1:]...)
		}
		for range 100 {
			switch {
			case r.IntN(4) == 0:
				var opts []api.Option
				s := &stream{reserved: int64(rule.Estimate)}
				if r.IntN(2) == 0 {
					s.reserved = 1 + r.Int64N(200)
					opts = append(opts, api.Cost("tokens", s.reserved))
				}
				var err error
				s.Admitted, err = g.Entry(t.Context(), "chat", opts...)
				require.Equal(t, taken+s.reserved <= limit || s.reserved == 0, err == nil)
				if err == nil {
					s.meter, s.granted = api.NewMeter(s.Admitted, "tokens"), s.reserved
					taken += s.reserved
					open = append(open, s)
				}
			case len(open) == 0:
			case r.IntN(6) == 0:
				finish(r.IntN(len(open)))
			default:
				s, n := open[r.IntN(len(open))], r.Int64N(60)-5
				s.used = max(0, s.used+n)
				ask := int64(0)
				if missing := s.used - s.granted; missing > 0 {
					ask = max(missing, s.reserved/4)
				}
				err := s.meter.Add(t.Context(), n)
				require.Equal(t, ask == 0 || taken+ask <= limit, err == nil, "%v", err)
				if err == nil {
					taken += ask
					s.granted += ask
				}
			}
		}
		for len(open) > 0 {
			finish(0)
		}
		for _, u := range g.UnitStats("chat") {
			require.Equal(t, used, u.Total.Used())
		}
	}
}

// A Meter of no call, or of a unit that neither the call nor a rule has, counts and limits nothing,
// and large numbers stop at 2^53.
func TestMeterWithoutALimit(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: "chat", Unit: "bytes", Threshold: 1 << 40})
	e, err := g.Entry(t.Context(), "chat")
	require.NoError(t, err)
	for _, m := range []*api.Meter{api.NewMeter(api.Admitted{}, "tokens"), api.NewMeter(e, "tokens"), api.NewMeter(e, "rows")} {
		require.NoError(t, m.Add(t.Context(), 5))
		require.NoError(t, m.Add(t.Context(), math.MinInt64))
		assert.Zero(t, m.Used())
		for range 3 {
			require.NoError(t, m.Add(t.Context(), math.MaxInt64))
		}
		assert.Equal(t, int64(1<<53), m.Used())
		m.Settle()
	}
	e.Exit()
	late := api.NewMeter(e, "bytes")
	require.ErrorIs(t, late.Add(t.Context(), 1), api.ErrExited)
	all := g.UnitStats("chat")
	require.Len(t, all, 1)
	assert.Equal(t, core.UnitCounts{Uncosted: 1}, all[0].Total)
}

// A stream that a defer settles before the exit is charged what came, even if it breaks off.
func TestMeterOfAStreamThatBreaksOff(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: "chat", Unit: "tokens", Threshold: 100, Interval: time.Hour})
	stream := func(chunks ...int64) (err error) {
		e, err := g.Entry(t.Context(), "chat", api.Cost("tokens", 50))
		require.NoError(t, err)
		defer e.ExitOn(&err)
		m := api.NewMeter(e, "tokens")
		defer m.Settle()
		for _, n := range chunks {
			if err := m.Add(t.Context(), n); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, stream())
	require.NoError(t, stream(10, 10))
	require.ErrorIs(t, stream(40, 45), api.ErrBlocked)
	assert.Equal(t, core.UnitCounts{Reserved: 150, Refunded: 80, Overdrawn: 35, Refused: 35}, g.UnitStats("chat")[0].Total)
}

// Costs, settlements below and beyond the reservation, and grants allocate nothing, nor does a Meter.
func TestNoAllocationsOfCosts(t *testing.T) {
	g := newGuard(t, api.Config{Clock: api.NewManualClock(time.Unix(1_800_000_000, 0))})
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow: []flow.Rule{
			{Resource: "chat", Unit: "tokens", Threshold: 1e12},
			{Resource: "chat", Unit: "tokens", Threshold: 1e12, Behavior: flow.TokenBucket, Burst: 1e9},
		},
		Isolation: []isolation.Rule{{Resource: "chat", Unit: "tokens", Threshold: 1e9}},
	}))
	used := int64(0)
	race.AllocatesNothing(t, 1000, func() {
		e, err := g.Entry(t.Context(), "chat", api.Cost("tokens", 10))
		if err != nil {
			t.Fatal(err)
		}
		m := api.NewMeter(e, "tokens")
		for range used % 30 {
			if err := m.Add(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		m.Settle()
		e.Exit()
		used++
	})
}
