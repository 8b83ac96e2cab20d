package trial

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// NoticeTwin is a naive account of the notices about one key: a log of all units. They count while
// their bucket is among the latest.
type NoticeTwin struct {
	Interval time.Duration
	Buckets  int64 // of the interval
	Counting int64 // buckets that count
	Percents []int64
	Limit    int64

	log  []event
	last map[int64]int64 // time of the latest notice, by percentage
}

type event struct{ at, n int64 }

// Used returns the units that count at now.
func (m *NoticeTwin) Used(now int64) (used int64) {
	width := (int64(m.Interval) + m.Buckets - 1) / m.Buckets
	for _, e := range m.log {
		if e.at/width > now/width-m.Counting {
			used += e.n
		}
	}
	return used
}

// Take counts n units.
func (m *NoticeTwin) Take(now, n int64) { m.log = append(m.log, event{now, n}) }

// Notices returns the percentages that are noticed now.
func (m *NoticeTwin) Notices(now int64) (percents []int64) {
	for _, p := range slices.Sorted(slices.Values(m.Percents)) {
		last, ok := m.last[p]
		if (!ok || now-last >= int64(m.Interval)) && m.Limit > 0 && 100*m.Used(now) >= p*m.Limit {
			if m.last == nil {
				m.last = make(map[int64]int64)
			}
			m.last[p] = now
			percents = append(percents, p)
		}
	}
	return percents
}

// Reset forgets the notices, as a reload with other shares or another interval does.
func (m *NoticeTwin) Reset() { m.last = nil }

// TakesAndRefuses is a slot that refuses calls with the attachment "refuse" only once earlier slots have
// taken units for them.
type TakesAndRefuses struct{}

// Name returns the slot's name.
func (TakesAndRefuses) Name() string { return "refuser" }

// Ask admits every call.
func (TakesAndRefuses) Ask(*engine.Invocation) engine.Verdict { return engine.Verdict{} }

// Take refuses such calls.
func (TakesAndRefuses) Take(inv *engine.Invocation) engine.Verdict {
	if v, _ := inv.ParamValue("refuse"); v != nil {
		return engine.Verdict{Block: &core.BlockError{Kind: core.KindCustom}}
	}
	return engine.Verdict{}
}
