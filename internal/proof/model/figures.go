package model

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// figures are a node's counts of the calls in [from, to).
type figures struct {
	Pass, Block, Exception, Complete, Occupied, Entered, Exited int64
	RT                                                          time.Duration
}

func (f figures) String() string {
	type plain figures // without this method
	return fmt.Sprintf("%+v", plain(f))
}

func (m *Model) figures(p place, from int64) (f figures) {
	for _, c := range m.calls {
		if !c.on(p) {
			continue
		}
		if c.State == Blocked && c.at >= from {
			f.Block += c.Units
		}
		if c.passed() && c.at >= from {
			f.Pass += c.Units
			f.Entered++
			if c.borrowed {
				f.Occupied += c.Units
			}
		}
		if c.State == Done && c.ended >= from {
			f.Complete += c.Units
			f.Exited++
			f.RT += time.Duration(c.ended - c.began)
			if c.failed {
				f.Exception += c.Units
			}
		}
	}
	return f
}

// allTime is before all events.
const allTime = math.MinInt64

// unlisted returns the authority rules in a mode that refuse a call.
func (m *Model) unlisted(c *Call, mode spec.Mode) (refusing []*By) {
	for _, r := range about(m, m.set.Authority, c.Resource) {
		if r.Mode == mode && (c.Origin == "" && r.List == authority.Allow && !r.AllowAnonymous ||
			c.Origin != "" && slices.Contains(r.Origins, c.Origin) == (r.List == authority.Deny)) {
			refusing = append(refusing, m.by(core.KindAuthority, r.ID))
		}
	}
	return refusing
}
