package family

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/sharing"
)

// NewSharedStats returns the stats of a rule that has no limit yet.
func NewSharedStats(m *sharing.Member) core.SharedStats {
	return core.SharedStats{Members: m.Members(), Store: "up"}
}

// AddShared adds the stats of one of the rule's limits to f.
func AddShared(f *core.SharedStats, l Shared) {
	x := l.stats()
	f.Leased += x.Leased
	f.Refused += x.Refused
	f.Requests += x.Requests
	f.Waited += x.Waited
	if x.Unreachable {
		f.Store, f.Why = "away", x.Why
	}
}
