//go:build sim

package meter

import (
	"testing"

	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Calls of two tenants and calls outside shares join, wait or give up, are granted units and give
// them back, while the limit changes, shares come and go or are named otherwise, and the semaphore
// retires. The limit is never exceeded, waiters are woken (otherwise they would wait forever, which
// fails the test), no call waits that is next and fits, nothing is held at the end, and the word
// suffices again.
func TestSimShares(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		lending.Always = s.Rand.IntN(2) == 0
		var g Semaphore
		most := 1 + s.Rand.Int64N(3)
		queue := 1 + s.Rand.IntN(4)
		rules := []*Sharing{nil, {By: "a", PerShare: 1 + s.Rand.IntN(3), MaxShares: 1}, {By: "b", PerShare: 3, MaxShares: 2}}
		first := rules[s.Rand.IntN(3)]
		g.SetSharing(1, most, first)
		var running shared.Int64
		retires := s.Rand.IntN(4) == 0
		for caller := range 2 + s.Rand.IntN(4) {
			c := Claim{Units: 1 + s.Rand.Int64N(min(2, most)), First: s.Rand.IntN(3) == 0, Queue: queue, Limit: most, Revision: 1}
			hasty, now := s.Rand.IntN(3) == 0, s.Rand.Int64N(100)
			s.Go(func() { shareCall(s, &g, &running, most, first, caller, c, hasty, now) })
		}
		if limit, next := 1+s.Rand.Int64N(most), rules[s.Rand.IntN(3)]; s.Rand.IntN(3) > 0 {
			s.Named("rules", func() {
				g.SetSharing(2, limit, next)
				checkShares(s, &g)
			})
		}
		if retires {
			s.Named("retirement", g.Retire)
		}
		s.Check(func() {
			if g.Held() != 0 || g.InUse() != 0 || g.Queued() != 0 || g.UnitsQueued() != 0 {
				s.Failf("%d held, %d queued at the end", g.Held(), g.Queued())
			}
			g.SetSharing(3, most, nil)
			if g.shares != nil || !retires && g.word.Load()&frozen != 0 {
				s.Failf("shares, or a frozen word, are left")
			}
		})
	})
}

func shareCall(s *schedules.Schedule, g *Semaphore, running *shared.Int64, most int64, sharing *Sharing, caller int, c Claim, hasty bool, now int64) {
	var got bool
	var share *Share
	var w *Waiter
	if sharing == nil {
		got, w = g.Join(uint32(caller), c)
	} else if !g.MayJoinShare(c, tenant(caller%2), now) && caller > 2 {
		return
	} else {
		got, share, w = g.JoinShare(c, sharing, tenant(caller%2), now)
	}
	checkShares(s, g)
	if w != nil {
		awake := false
		w.Attend(func() { awake = true })
		if hasty {
			w.leaveAt(now)
			checkShares(s, g)
			return
		}
		s.Await(func() bool { return awake })
		if got, share = w.Granted(), w.Share(); !got && w.state != gone && w.state != displaced {
			s.Failf("%d was woken for nothing", caller)
		}
	}
	if !got {
		return
	}
	if n := running.Add(c.Units); n > most {
		s.Failf("%d units run, of %d", n, most)
	}
	running.Add(-c.Units)
	if share != nil {
		share.releaseAt(now, c.Units, false)
	} else if !g.TryRelease(c.Units) {
		g.Release(uint32(caller), c.Units)
	}
	checkShares(s, g)
}

// checkShares checks the books of the shares, and that no call waits that is next and fits.
func checkShares(s *schedules.Schedule, g *Semaphore) {
	g.lock()
	defer g.release()
	x := g.shares
	if x == nil {
		return
	}
	var held, weights int64
	waiting := 0
	for _, share := range x.all {
		held, waiting = held+share.held, waiting+share.length
		if share.active() {
			weights += share.weight
		}
		for kind := range share.heaps {
			if (share.heaps[kind] > 0) != (share.length > 0) {
				s.Failf("a heap has a share with %d calls, or not", share.length)
			}
		}
	}
	var inBands, heldInBands int64
	for i := range x.bands {
		inBands, heldInBands = inBands+x.bands[i].weights, heldInBands+x.bands[i].held
	}
	if held != x.held || held != heldInBands || waiting != x.waiting || weights != inBands || held > g.total() || g.queued.Load() != int64(waiting+g.queue.length) {
		s.Failf("held %d of %d, waiting %d of %d, weights %d of %d", x.held, held, x.waiting, waiting, inBands, weights)
	}
	if next := x.pick(g.queue.limit); next != nil && (x.sharing == nil || g.queue.length == 0) && g.fits(next.first().claim.Units) {
		s.Failf("a call waits that is next and fits")
	}
}
