package meter

import (
	"math"
	"slices"

	"github.com/penstock-go/penstock/core/argument"
)

// ShareStats describes one share, or several.
type ShareStats struct {
	Tenant argument.Value
	Level  int     // of its calls, from 0, the highest
	Other  int     // of a share of several tenants, its number from 1
	Weight int64   // of several shares, the sum
	Part   float64 // its fair part of the limit, in units, as of now; 0 if it is not active
	Held   int64   // units
	Queued int     // calls
	// Calls that were served, refused because a queue was full, displaced by another share's, or that
	// gave up their place.
	Served, Refused, Displaced, Expired int64
}

// Shares returns the shares, and the sum of the forgotten ones. There are none if the units are shared
// in another way.
func (g *Semaphore) Shares(by *Sharing) (all []ShareStats, gone ShareStats) {
	g.lock()
	defer g.release()
	if s := g.shares; s != nil && s.sharing == by {
		all, gone = s.statsOfAll(g.queue.limit)
	}
	return all, gone
}

func (s *shares) statsOfAll(limit int64) (all []ShareStats, gone ShareStats) {
	all = make([]ShareStats, 0, len(s.all))
	for _, x := range s.all {
		all = append(all, s.stats(x, limit))
	}
	c := s.gone
	return all, ShareStats{Served: c.served, Refused: c.refused, Displaced: c.displaced, Expired: c.expired}
}

func (s *shares) stats(x *Share, limit int64) ShareStats {
	f := ShareStats{
		Tenant: x.tenant.Name, Level: x.band.level, Other: x.other, Weight: x.weight, Held: x.held, Queued: x.length,
		Served: x.figures.served, Refused: x.figures.refused, Displaced: x.figures.displaced, Expired: x.figures.expired,
	}
	if x.active() {
		f.Part = float64(s.limitOf(x.band, limit)) * float64(x.weight) / float64(x.band.weights)
	}
	return f
}

// ShareLook is a share as a call would find it.
type ShareLook struct {
	ShareStats
	Place       int  // the call's place among the waiting calls, from 1
	Runs, Waits bool // it would, as of now
}

// LookShare returns the share that a call at now would find. It changes nothing.
func (g *Semaphore) LookShare(c Claim, sharing *Sharing, t *Tenant, now int64) ShareLook {
	g.lock()
	defer g.release()
	f := ShareLook{ShareStats: ShareStats{Tenant: t.Name, Level: sharing.level(t)}, Place: 1}
	s := g.shares
	if s == nil || s.sharing == nil { // the rules are new
		s = newShares()
		s.sharing = sharing
	}
	b := &s.bands[f.Level]
	limit := c.limit(&g.queue)
	room := c.Units <= limit && g.total() <= limit-c.Units
	f.Runs = room && (g.queue.length+s.waiting == 0 || g.nextLocked(s, c, t, now))
	f.Waits = !f.Runs && c.Units <= limit && g.mayQueueLocked(s, c, t) && c.Queue > 0
	f.Weight = s.weightOf(t)
	f.Part = float64(s.limitOf(b, limit)) * float64(f.Weight) / float64(b.weights+f.Weight)
	x := s.find(t)
	if x == nil {
		return f
	}
	alone := f.Part
	if f.ShareStats = s.stats(x, limit); !x.active() {
		f.Part = alone
	}
	f.Place = x.placeFor(c.First, c.units())
	return f
}

// placeFor returns the place of a new call of that cost among the waiting calls of the share, from 1.
func (s *Share) placeFor(first bool, cost Moment) (place int) {
	if !first {
		return s.length + 1
	}
	place = 1
	for w, behind := s.first(), s.spot(cost, cost).behind; behind != nil && w != nil; w = w.after {
		if place++; w == behind {
			break
		}
	}
	return place
}

// nextLocked estimates whether the call would be served before the calls that wait. It changes
// nothing.
func (g *Semaphore) nextLocked(s *shares, c Claim, t *Tenant, now int64) bool {
	if g.queue.length > 0 {
		return false
	}
	level := s.sharing.level(t)
	if slices.ContainsFunc(s.bands[:level], func(b band) bool { return b.waits() }) {
		return false
	}
	all := *s // whose bands and sums may change
	all.pass(now)
	b, x := &all.bands[level], s.find(t)
	y := Share{id: math.MaxUint64, at: all.now, busy: b.busy}
	if x != nil {
		if x.length > 0 && (!c.First || x.spot(c.units(), c.units()).behind != nil) {
			return false
		}
		y = *x
	} else {
		y.weight = s.weightOf(t)
	}
	y.band = b
	all.begin(&y)
	all.activate(&y)
	ahead := func(kind heapKind) *Share {
		if first := b.heaps[kind].first(); first != nil && first != x && kind.before(first, &y) {
			return first
		}
		return &y
	}
	least := *ahead(byKey)
	if least.band = b; all.below(&least, g.queue.limit) {
		return least.id == y.id
	}
	return ahead(byHeld) == &y
}
