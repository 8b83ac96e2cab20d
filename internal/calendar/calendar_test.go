package calendar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
)

func of(t testing.TB, per spec.Per, timezone, starts string) *Calendar {
	t.Helper()
	f, err := Fields{per, timezone, starts}.Normalized()
	require.NoError(t, err)
	return f.Calendar()
}

// Periods are the same as in another calendar: days of 23 and 25 hours, midnights that the clocks
// skip or show twice, a date that a zone skipped, ends of months, and leap years.
func TestPeriodsOfAnotherCalendar(t *testing.T) {
	text, err := os.ReadFile("testdata/periods.txt")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line == "" {
			continue
		}
		head, tail, _ := strings.Cut(line, "; ")
		fields := strings.Split(head, ", ")
		var per spec.Per
		require.NoError(t, per.UnmarshalText([]byte(fields[0])))
		var want Span
		_, err := fmt.Sscan(tail, &want.Start, &want.End)
		require.NoError(t, err)
		want.Start *= int64(time.Second)
		want.End *= int64(time.Second)
		for _, now := range []int64{want.Start, want.End - 1, want.Start + (want.End-want.Start)/2} {
			assert.Equal(t, want, of(t, per, fields[1], fields[2]).At(now), line)
		}
		c := of(t, per, fields[1], fields[2]) // one that remembers its latest period
		assert.Equal(t, want, c.At(want.Start))
		assert.Equal(t, want.Start, c.At(want.Start-1).End, "before %s", line)
		assert.Equal(t, want.End, c.At(want.End).Start, "after %s", line)
		rows++
	}
	assert.Greater(t, rows, 70)
}

// A few of them by hand.
func TestPeriods(t *testing.T) {
	for _, tt := range []struct {
		per              spec.Per
		timezone, starts string
		at, start, end   string
	}{
		{spec.PerDay, "", "", "2026-12-01T12:03:14Z", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"},
		{spec.PerDay, "Europe/Berlin", "", "2024-03-31T12:00:00Z", "2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"},          // 23 h
		{spec.PerDay, "America/New_York", "06:00", "2024-11-03T09:00:00Z", "2024-11-02T10:00:00Z", "2024-11-03T11:00:00Z"},  // 25 h
		{spec.PerWeek, "Asia/Tokyo", "", "2024-02-29T00:00:00Z", "2024-02-25T15:00:00Z", "2024-03-03T15:00:00Z"},            // from Monday
		{spec.PerMonth, "", "31", "2023-02-28T00:00:00Z", "2023-02-28T00:00:00Z", "2023-03-31T00:00:00Z"},                   // no 31st
		{spec.PerMonth, "", "30 06:00", "2024-02-29T05:59:59Z", "2024-01-30T06:00:00Z", "2024-02-29T06:00:00Z"},             // leap year
		{spec.PerMonth, "Europe/Berlin", "", "2024-03-31T22:00:00Z", "2024-03-31T22:00:00Z", "2024-04-30T22:00:00Z"},        // of DST
		{spec.PerDay, "America/Sao_Paulo", "", "2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},      // no midnight
		{spec.PerDay, "America/Sao_Paulo", "", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},      // 25 h
		{spec.PerDay, "Pacific/Apia", "", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},           // Dec 31
		{spec.PerDay, "Pacific/Apia", "", "2011-12-30T09:59:59.999999999Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"}, // Dec 29
	} {
		at := func(text string) int64 {
			parsed, err := time.Parse(time.RFC3339Nano, text)
			require.NoError(t, err)
			return parsed.UnixNano()
		}
		assert.Equal(t, Span{at(tt.start), at(tt.end)}, of(t, tt.per, tt.timezone, tt.starts).At(at(tt.at)), "%+v", tt)
	}
}

// At any time a clock can show there is a period that has it, and the next starts where it ends.
func TestPeriodsHaveNoGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe", "America/Havana", "Africa/Casablanca", "Asia/Manila", "America/Juneau"}
	starts := map[spec.Per][]string{
		spec.PerDay:   {"", "00:30", "02:30", "23:59"},
		spec.PerWeek:  {"", "sunday 02:00", "friday 23:30"},
		spec.PerMonth: {"", "15", "29 02:30", "31 23:59"},
	}
	longest := map[spec.Per]time.Duration{spec.PerDay: 50 * time.Hour, spec.PerWeek: 9 * 24 * time.Hour, spec.PerMonth: 33 * 24 * time.Hour}
	for per, texts := range starts {
		for _, zone := range zones {
			for _, text := range texts {
				c := of(t, per, zone, text)
				for range 200 {
					now := rng.Int64() - rng.Int64()
					now -= now % int64(time.Minute)
					if now > math.MaxInt64-int64(100*24*time.Hour) || now < math.MinInt64+int64(100*24*time.Hour) {
						continue
					}
					s := c.At(now)
					require.True(t, s.Has(now), "%v %s %s at %d: %v", per, zone, text, now, s)
					require.Equal(t, s.End, c.At(s.End).Start, "%v %s %s at %d", per, zone, text, now)
					require.Equal(t, s, c.At(s.Start))
					require.LessOrEqual(t, s.Length(), longest[per], "%v %s %s at %d", per, zone, text, now)
				}
			}
		}
	}
	for _, now := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 - 1} { // beyond them there is no time
		assert.NotPanics(t, func() { of(t, spec.PerMonth, "Europe/Berlin", "").At(now) })
	}
}

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		in, want Fields
	}{
		{Fields{}, Fields{}},
		{Fields{Per: spec.PerDay}, Fields{spec.PerDay, "UTC", "00:00"}},
		{Fields{Per: spec.PerWeek}, Fields{spec.PerWeek, "UTC", "monday 00:00"}},
		{Fields{Per: spec.PerMonth}, Fields{spec.PerMonth, "UTC", "1 00:00"}},
		{Fields{spec.PerDay, "Asia/Tokyo", "06:00"}, Fields{spec.PerDay, "Asia/Tokyo", "06:00"}},
		{Fields{spec.PerWeek, "UTC", "sunday"}, Fields{spec.PerWeek, "UTC", "sunday 00:00"}},
		{Fields{spec.PerMonth, "UTC", "31 23:59"}, Fields{spec.PerMonth, "UTC", "31 23:59"}},
	} {
		got, err := tt.in.Normalized()
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
		again, err := got.Normalized()
		require.NoError(t, err)
		assert.Equal(t, got, again)
	}
	for _, tt := range []struct {
		in   Fields
		want string
	}{
		{Fields{Per: 9}, "per: 9 is unknown: use api.PerDay, api.PerWeek or api.PerMonth"},
		{Fields{Timezone: "UTC"}, "timezone: has no meaning for a rule without per: remove it, or set per to day, week or month"},
		{Fields{Starts: "06:00"}, "starts: has no meaning for a rule without per: remove it, or set per to day, week or month"},
		{Fields{spec.PerDay, "Europe/Atlantis", ""}, `timezone: is "Europe/Atlantis", which this program doesn't know: use a name such as "Europe/Berlin" or "UTC", and if the machine has no time zones, import _ "time/tzdata" in the program`},
		{Fields{spec.PerDay, "../etc/passwd", ""}, `timezone: is "../etc/passwd", which this program`},
		{Fields{spec.PerDay, "Local", ""}, `timezone: is "Local", which differs between machines`},
	} {
		_, err := tt.in.Normalized()
		assert.ErrorContains(t, err, tt.want)
	}
	for per, texts := range map[spec.Per][]string{
		spec.PerDay:   {"6:00", "24:00", "06:60", "06", "06:00 ", " 06:00", "monday", "x 06:00", "0600", "06:00:00", "+6:00", "06:+0", " "},
		spec.PerWeek:  {"06:00", "Monday", "mon", "monday ", "monday 6:00", "monday  06:00", " 06:00", "1"},
		spec.PerMonth: {"0", "32", "01", "+1", "1st", "15 ", "15 24:00", "06:00", "-1", "last"},
	} {
		for _, text := range texts {
			_, err := Fields{per, "", text}.Normalized()
			assert.ErrorContains(t, err, fmt.Sprintf("starts: is %q: use ", text), "%v", per)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	c := of(b, spec.PerDay, "Europe/Berlin", "")
	b.Run("in the same period", func(b *testing.B) {
		for b.Loop() {
			c.At(1711900000_000_000_000)
		}
	})
	b.Run("in another", func(b *testing.B) {
		for b.Loop() {
			c.find(1711900000_000_000_000)
		}
	})
}
