package api_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// quotaStarts are the starts of periods around weekends on which clocks change, in Unix seconds, found
// by functions of internal/calendar/testdata/periods.py.
var quotaStarts = map[calendar.Fields][]int64{
	{Per: spec.PerDay, Timezone: "Europe/Berlin", Starts: "00:00"}: {
		1729202400, 1729288800, 1729375200, 1729461600, 1729548000, 1729634400, 1729720800, 1729807200, 1729893600, 1729980000,
		1730070000, 1730156400, 1730242800, 1730329200, 1730415600, 1730502000, 1730588400, 1730674800, 1730761200, 1730847600,
		1730934000, 1731020400, 1731106800, 1731193200, 1731279600, 1731366000, 1731452400, 1731538800, 1731625200, 1731711600,
		1731798000, 1731884400, 1731970800,
	},
	{Per: spec.PerDay, Timezone: "America/New_York", Starts: "06:00"}: {
		1729245600, 1729332000, 1729418400, 1729504800, 1729591200, 1729677600, 1729764000, 1729850400, 1729936800, 1730023200,
		1730109600, 1730196000, 1730282400, 1730368800, 1730455200, 1730541600, 1730631600, 1730718000, 1730804400, 1730890800,
		1730977200, 1731063600, 1731150000, 1731236400, 1731322800, 1731409200, 1731495600, 1731582000, 1731668400, 1731754800,
		1731841200, 1731927600, 1732014000,
	},
	{Per: spec.PerWeek, Timezone: "UTC", Starts: "monday 00:00"}: {
		1724630400, 1725235200, 1725840000, 1726444800, 1727049600, 1727654400, 1728259200, 1728864000, 1729468800, 1730073600,
		1730678400, 1731283200, 1731888000, 1732492800, 1733097600, 1733702400, 1734307200, 1734912000, 1735516800, 1736121600,
	},
	{Per: spec.PerDay, Timezone: "America/Havana", Starts: "00:30"}: {
		1729225800, 1729312200, 1729398600, 1729485000, 1729571400, 1729657800, 1729744200, 1729830600, 1729917000, 1730003400,
		1730089800, 1730176200, 1730262600, 1730349000, 1730435400, 1730521800, 1730608200, 1730698200, 1730784600, 1730871000,
		1730957400, 1731043800, 1731130200, 1731216600, 1731303000, 1731389400, 1731475800, 1731562200, 1731648600, 1731735000,
		1731821400, 1731907800, 1731994200,
	},
	{Per: spec.PerMonth, Timezone: "Asia/Tokyo", Starts: "31 12:00"}: {
		1725073200, 1727665200, 1730343600, 1732935600, 1735614000,
	},
	{Per: spec.PerWeek, Timezone: "Australia/Lord_Howe", Starts: "sunday 02:15"}: {
		1724514300, 1725119100, 1725723900, 1726328700, 1726933500, 1727538300, 1728142200, 1728746100, 1729350900, 1729955700,
		1730560500, 1731165300, 1731770100, 1732374900, 1732979700, 1733584500, 1734189300, 1734794100, 1735398900, 1736003700,
		1736608500,
	},
}

// Quotas agree with a twin that keeps a list of grants for each key and looks up when periods start:
// 64 callers on a virtual clock, costs that are settled within their period or after it, calls that
// the other rule refuses, and reloads that change thresholds and calendars.
func TestQuotasAgreeWithAList(t *testing.T) {
	var decided int64
	passed, refused, late := 0, 0, 0
	for seed := range uint64(figure.Size(20, 60, 300, 3000)) {
		h := newQuotaTwin(t, seed)
		for range 400 {
			h.step()
		}
		decided += int64(h.passed + h.refused)
		passed, refused, late = passed+h.passed, refused+h.refused, late+h.late
	}
	t.Logf("%d passed, %d refused, %d settled after their period", passed, refused, late)
	require.Greater(t, passed, 1000)
	require.Greater(t, refused, 1000)
	require.Greater(t, late, 10)
	figure.Report(t, figure.Figure{Name: "verdicts of quotas that differ from a list of grants", N: decided})
}

// quotaTwin has a rule of each family.
type quotaTwin struct {
	*rand.Rand
	t       *testing.T
	g       *api.Guard
	clock   *api.ManualClock
	f       flow.Rule
	h       hotspot.Rule
	all     twinQuota             // of f
	each    map[string]*twinQuota // of h, by value
	open    []*quotaCall
	passed  int
	refused int
	late    int
}

// twinQuota has the grants of a key in its period.
type twinQuota struct {
	ends   int64
	grants map[*quotaCall]int64
}

type quotaCall struct {
	entry    api.Admitted
	reserved int64
	of       []*twinQuota
	entered  int64
}

func newQuotaTwin(t *testing.T, seed uint64) *quotaTwin {
	h := &quotaTwin{
		Rand: rand.New(rand.NewPCG(seed, 41)), t: t, each: make(map[string]*twinQuota),
		clock: api.NewManualClock(time.Date(2024, 10, 25, 0, 0, 0, 0, time.UTC)),
		f:     flow.Rule{ID: "f", Resource: "orders"}, h: hotspot.Rule{ID: "h", Resource: "orders", Param: "user"},
	}
	if h.IntN(2) == 0 {
		h.f.Unit, h.h.Unit = "tokens", "tokens"
	}
	g, err := api.New(api.Config{Clock: h.clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	h.g = g
	h.reload()
	return h
}

func (h *quotaTwin) fields() (f calendar.Fields) {
	i := h.IntN(len(quotaStarts))
	for _, f = range sortedQuotas() {
		if i--; i < 0 {
			break
		}
	}
	return f
}

// sortedQuotas lists the calendars, always in the same order.
func sortedQuotas() []calendar.Fields {
	all := make([]calendar.Fields, 0, len(quotaStarts))
	for f := range quotaStarts {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b calendar.Fields) int { return strings.Compare(a.Timezone, b.Timezone) })
	return all
}

// reload changes the rules. Used units count until the next period of the new calendar.
func (h *quotaTwin) reload() {
	now := h.now()
	change := func(q *twinQuota, f calendar.Fields) {
		if q.ends != 0 {
			q.roll(now, f)
			q.ends = nextStart(f, now)
		}
	}
	if f := h.fields(); h.f.Per == spec.PerNone || h.IntN(2) == 0 {
		h.f.Per, h.f.Timezone, h.f.Starts = f.Per, f.Timezone, f.Starts
		change(&h.all, f)
	}
	if f := h.fields(); h.h.Per == spec.PerNone || h.IntN(2) == 0 {
		h.h.Per, h.h.Timezone, h.h.Starts = f.Per, f.Timezone, f.Starts
		for _, q := range h.each {
			change(q, f)
		}
	}
	h.f.Threshold, h.h.Threshold = float64(h.IntN(300)), float64(h.IntN(12))
	require.NoError(h.t, h.g.LoadRules(api.RuleSet{Flow: []flow.Rule{h.f}, Hotspot: []hotspot.Rule{h.h}}))
}

func (h *quotaTwin) now() int64 { return h.clock.Now() }

func nextStart(f calendar.Fields, now int64) int64 {
	for _, s := range quotaStarts[f] {
		if s *= int64(time.Second); s > now {
			return s
		}
	}
	panic("the twin has no such period")
}

// roll begins the period at now.
func (q *twinQuota) roll(now int64, f calendar.Fields) {
	if now >= q.ends {
		q.ends, q.grants = nextStart(f, now), make(map[*quotaCall]int64)
	}
}

func (q *twinQuota) used() (n int64) {
	for _, units := range q.grants {
		n += units
	}
	return n
}

func (h *quotaTwin) step() {
	switch h.IntN(12) {
	case 0:
		h.clock.Advance(time.Duration(h.Int64N(int64(3 * time.Hour))))
	case 1: // to a boundary, or just before it
		f := calendar.Fields{Per: h.f.Per, Timezone: h.f.Timezone, Starts: h.f.Starts}
		if h.IntN(2) == 0 {
			f = calendar.Fields{Per: h.h.Per, Timezone: h.h.Timezone, Starts: h.h.Starts}
		}
		if left := nextStart(f, h.now()) - h.now() - h.Int64N(2); left < int64(26*time.Hour) && h.now() < quotaEnd {
			h.clock.Advance(time.Duration(left))
		}
	case 2:
		if h.IntN(4) == 0 {
			h.reload()
		}
	case 3, 4:
		if len(h.open) > 0 {
			h.settle(h.IntN(len(h.open)))
		}
	default:
		h.enter()
	}
	for h.now() > quotaEnd && len(h.open) > 0 {
		h.settle(0)
	}
}

var quotaEnd = time.Date(2024, 11, 15, 0, 0, 0, 0, time.UTC).UnixNano()

func (h *quotaTwin) enter() {
	if h.now() > quotaEnd {
		return
	}
	user, n := fmt.Sprint("u", h.IntN(64)), 1+h.Int64N(3)
	opts := []api.Option{api.Param("user", user)}
	if h.f.Unit == "" {
		opts = append(opts, api.Units(int(n)))
	} else {
		opts = append(opts, api.Cost("tokens", n))
	}
	q := h.each[user]
	if q == nil {
		q = new(twinQuota)
		h.each[user] = q
	}
	q.roll(h.now(), calendar.Fields{Per: h.h.Per, Timezone: h.h.Timezone, Starts: h.h.Starts})
	h.all.roll(h.now(), calendar.Fields{Per: h.f.Per, Timezone: h.f.Timezone, Starts: h.f.Starts})
	c := &quotaCall{reserved: n, of: []*twinQuota{q, &h.all}, entered: h.now()}
	want, limit, by := "", int64(0), (*twinQuota)(nil)
	switch {
	case q.used()+n > int64(h.h.Threshold):
		want, limit, by = "h", int64(h.h.Threshold), q
	case h.all.used()+n > int64(h.f.Threshold):
		want, limit, by = "f", int64(h.f.Threshold), &h.all
	}
	e, err := h.g.Entry(h.t.Context(), "orders", opts...)
	if want == "" {
		require.NoError(h.t, err)
		h.passed++
		q.grants[c], h.all.grants[c] = n, n
		c.entry = e
		r, known := e.Remaining(h.f.Unit)
		require.True(h.t, known)
		of, most := &h.all, int64(h.f.Threshold)
		if r.Rule == "h" {
			of, most = q, int64(h.h.Threshold)
		}
		require.Equal(h.t, most-of.used(), r.Left)
		require.Equal(h.t, of.ends-h.now(), int64(r.Resets))
		h.open = append(h.open, c)
		if h.IntN(2) == 0 {
			h.settle(len(h.open) - 1)
		}
		return
	}
	h.refused++
	var block *api.BlockError
	require.True(h.t, errors.As(err, &block), "%v, want a refusal by %s", err, want)
	require.Equal(h.t, want, block.Rule)
	wait, known := block.RetryAfter()
	asked := n
	if h.f.Unit == "" {
		asked = 1 // a refusal is the same for all calls
	}
	switch {
	case limit < asked:
		require.False(h.t, known)
	case by.used()+asked <= limit:
		require.Zero(h.t, wait)
	default:
		require.Equal(h.t, by.ends-h.now(), int64(wait))
	}
}

// settle ends a call.
func (h *quotaTwin) settle(i int) {
	c := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	if h.f.Unit != "" && h.IntN(3) > 0 {
		used := h.Int64N(2 * c.reserved)
		c.entry.Settle("tokens", used)
		for _, q := range c.of {
			if _, counts := q.grants[c]; counts && h.now() < q.ends {
				q.grants[c] = used
			} else {
				h.late++
			}
		}
	}
	c.entry.Exit()
}
