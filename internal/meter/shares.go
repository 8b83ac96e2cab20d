package meter

import "github.com/penstock-go/penstock/core/argument"

// Sharing divides the units of a semaphore between tenants; see [Semaphore.JoinShare]. It must not
// change once a semaphore knows it.
type Sharing struct {
	Now       func() int64 // the clock, which may panic, stand still or go back
	By        string       // identifies the values that name tenants: with another By, all shares are new
	PerShare  int          // maximum number of waiting calls of a share
	MaxShares int          // maximum number of tenants with shares of their own, besides those in Weights
	// Weights are those of tenants or, with ByClass, of classes; 1 for others.
	Weights map[argument.Value]int64
	ByClass bool
	// Levels makes calls of a higher level come first. Tenants share what the levels above leave.
	Levels bool
}

// Tenant is the tenant of a call, with Sharing.ByClass its class, and with Sharing.Levels the level
// of the call: from 0, the highest, to Levels-1.
type Tenant struct {
	Name, Class argument.Value
	Level       int
}

// Levels is the number of levels.
const Levels = 4

// weight returns the weight of a tenant, and whether Weights name it.
func (c *Sharing) weight(t *Tenant) (weight int64, named bool) {
	of := &t.Name
	if c.ByClass {
		of = &t.Class
	}
	weight, named = c.Weights[*of]
	return max(weight, 1), named && !c.ByClass
}

// level returns the level of a call.
func (c *Sharing) level(t *Tenant) int {
	if !c.Levels {
		return 0
	}
	return t.Level
}

// Share is the part of a semaphore that one tenant uses, or several with the same hash, for calls of
// one level. Its fields are guarded by the semaphore's mu.
//
// # Fairness
//
// A share is active while it holds units or waits for some. The fair part of an active share is the
// limit by its weight over the weights of all active ones. Fairness is measured in the time that
// units are held, per weight, so that long calls count as much as many short ones. The key of a
// share is its use so far, plus the use to expect of the units that it holds. Free units go to the
// least key if that share holds less than its fair part, otherwise to the share that holds the
// fewest units per weight. So no share at or above its fair part gets units while one below waits.
//
// The virtual time is the later of the last served key and its own growth. A share that didn't wait
// begins there: it has earned nothing meanwhile. The growth keeps a stream of new tenants from
// starving an old one. While nobody waits, neither keys nor virtual time grow: idle capacity is no
// debt. Equal shares take turns.
//
// With levels, free units go to the highest level that waits: each level is a band of shares with a
// virtual time of its own, and of the limit it has the units that other bands don't hold. So no call
// of a level is served while one of a higher level waits.
type Share struct {
	semaphore *Semaphore // nil for a share of turns
	clock     func() int64
	band      *band
	tenant    Tenant
	hash      uint64
	id        uint64 // increases with each grant; breaks ties
	weight    int64
	other     int // of a share of several tenants, its number from 1
	named     bool
	orphan    bool // of another Sharing.By: no call finds it

	held    int64
	used    float64 // ns of units per weight while calls of the band waited
	pending float64 // the use to expect of held units, per weight
	at      int64   // the time up to which used and area are known
	busy    int64   // the band's at that time
	area    float64 // ns of units held, of late
	done    float64 // units given back in that time

	ranks[*Waiter] // waiting calls

	next    *Share // in its bucket of the table
	all     int    // its position in shares.all
	heaps   [heapKinds]int
	figures shareCounts
}

type shareCounts struct{ served, refused, displaced, expired int64 }

func (c *shareCounts) add(o shareCounts) {
	c.served += o.served
	c.refused += o.refused
	c.displaced += o.displaced
	c.expired += o.expired
}

func (s *Share) key() float64 { return s.used + s.pending }
func (s *Share) active() bool { return s.held > 0 || s.length > 0 }

// size returns the length of the share's queue: in calls, or if they wait for turns the time of the
// turns before the last, so that one large call isn't a long queue.
func (s *Share) size() int64 {
	switch {
	case s.semaphore != nil:
		return int64(s.length)
	case s.tail != nil:
		return s.cost.ns - s.tail.cost.ns
	}
	return 0
}

// bound is 1 for a share that MaxShares bounds, otherwise 0.
func (s *Share) bound() int {
	if s.named || s.other > 0 {
		return 0
	}
	return 1
}

// Semaphore returns the semaphore that the share belongs to.
func (s *Share) Semaphore() *Semaphore { return s.semaphore }

// shares are the shares of one semaphore, guarded by its mu. While a semaphore has shares, its word
// is frozen, so that calls that use only the word find out.
type shares struct {
	sharing *Sharing // nil once the rules no longer share: the shares that are left drain
	now     int64    // the latest time seen: a clock that goes back stands still
	active  int      // number of active shares
	held    int64
	waiting int // calls
	area    float64
	done    float64

	bands [Levels]band // the highest first
	all   []*Share
	table shareTable
	bound int // number of shares that MaxShares bounds
	hand  int
	ids   uint64
	gone  shareCounts // of forgotten shares
}

// band holds the shares of one level.
type band struct {
	level   int
	busy    int64 // ns for which calls have waited
	virtual float64
	latest  float64 // the greatest key of a share that gave back its last unit
	weights int64   // of active shares
	held    int64
	others  [otherShares]*Share
	heaps   [heapKinds]shareHeap // of the shares that wait
}

const (
	otherShares = 16  // shares of the tenants that find no room
	growth      = 0.8 // of virtual time
	keptShares  = 16  // shares that are not worth forgetting
	recently    = 64  // units given back after which older ones count half
)

func newShares() *shares {
	s := new(shares)
	for i := range s.bands {
		b := &s.bands[i]
		b.level = i
		for kind := range b.heaps {
			b.heaps[kind].kind = heapKind(kind)
		}
	}
	return s
}

// configure changes the sharing. Shares whose tenants are named by other values drain.
func (s *shares) configure(c *Sharing) {
	old := s.sharing
	s.sharing = c
	if c == nil {
		return
	}
	anew := old == nil || old.By != c.By || old.Levels != c.Levels
	for _, x := range s.all {
		if x.orphan = x.orphan || anew; x.orphan {
			continue
		}
		weight, named := c.weight(&x.tenant)
		if x.other > 0 {
			weight = 1
		}
		s.bound -= x.bound()
		x.named = named
		s.bound += x.bound()
		s.weigh(x, weight)
	}
	if anew {
		s.table = shareTable{}
		for i := range s.bands {
			s.bands[i].others = [otherShares]*Share{}
		}
	}
}

// weigh changes the weight of a share.
func (s *shares) weigh(x *Share, weight int64) {
	if weight == x.weight {
		return
	}
	s.settle(x)
	if x.active() {
		x.band.weights += weight - x.weight
	}
	x.pending *= float64(x.weight) / float64(weight)
	x.weight = weight
	s.fix(x)
}

// pass moves time on.
func (s *shares) pass(now int64) {
	if now <= s.now {
		return
	}
	for i := range s.bands {
		if b := &s.bands[i]; b.waits() {
			b.busy += now - s.now
			b.virtual += growth * float64(now-s.now) * float64(b.held) / float64(b.weights)
		}
	}
	s.now = now
}

// waits reports whether a call waits.
func (b *band) waits() bool { return b.heaps[byKey].first() != nil }

// settle brings the use of a share up to date, and reports whether it has changed.
func (s *shares) settle(x *Share) bool {
	if s.now == x.at {
		return false
	}
	area := float64(s.now-x.at) * float64(x.held)
	used := float64(x.band.busy-x.busy) * float64(x.held)
	x.at, x.busy = s.now, x.band.busy
	x.used += used / float64(x.weight)
	x.area += area
	s.area += area
	return used > 0
}

// expected returns the time for which a unit of the share is likely to be held, or the likely cost of
// its next turn.
func (s *shares) expected(x *Share) float64 {
	switch {
	case x.done > 0:
		return x.area / x.done
	case s.done > 0:
		return s.area / s.done
	}
	return 0
}

// begin prepares a share that doesn't wait for its next call. It begins at the virtual time, but at
// most half a unit's time behind the first share that waits: if calls take the same time, each of the
// others has at most one turn before it. A stream of new tenants moves that point on, and so doesn't
// starve an old one.
func (s *shares) begin(x *Share) {
	s.settle(x)
	from := x.band.virtual
	if first := x.band.heaps[byKey].first(); first != nil {
		from = min(from, first.key()+s.expected(x)/2)
	}
	if x.length == 0 && x.key() < from {
		x.used = from - x.pending
	}
}

// grant counts n units of a share.
func (s *shares) grant(x *Share, n int64) {
	s.settle(x)
	b := x.band
	if b.waits() {
		b.virtual = max(b.virtual, x.key())
	}
	s.ids++
	x.id = s.ids
	s.activate(x)
	x.pending += float64(n) * s.expected(x) / float64(x.weight)
	x.held += n
	b.held += n
	s.held += n
	x.figures.served++
}

// grantTurn counts a turn of a share. Its cost is known, so that nothing is pending, and a share holds
// no turns.
func (s *shares) grantTurn(x *Share, cost Moment) {
	b, c := x.band, cost.float()
	b.virtual = max(b.virtual+growth*c/float64(b.weights), x.key())
	s.ids++
	x.id = s.ids
	x.used += c / float64(x.weight)
	b.latest = max(b.latest, x.used)
	x.area, x.done = halved(x.area+c, x.done+1)
	s.area, s.done = halved(s.area+c, s.done+1)
	x.figures.served++
}

// charge counts time that others lost because of a share.
func (s *shares) charge(x *Share, lost Moment) {
	x.used += lost.float() / float64(x.weight)
	s.fix(x)
}

// giveBackTurn takes back the latest turn of all.
func (s *shares) giveBackTurn(x *Share, cost Moment) {
	x.used -= cost.float() / float64(x.weight)
	x.figures.served--
	s.fix(x)
}

// giveBack takes n units off a share.
func (s *shares) giveBack(x *Share, n int64) {
	s.settle(x)
	x.pending -= x.pending * float64(n) / float64(x.held)
	x.done += float64(n)
	s.done += float64(n)
	x.area, x.done = halved(x.area, x.done)
	s.area, s.done = halved(s.area, s.done)
	s.held -= n
	x.band.held -= n
	if x.held -= n; x.held == 0 {
		x.pending = 0
		x.band.latest = max(x.band.latest, x.used)
	}
	s.deactivated(x)
	s.fix(x)
}

func halved(area, done float64) (float64, float64) {
	if done < 2*recently {
		return area, done
	}
	return area / 2, done / 2
}

// activate accounts for a share that is about to hold something, or to wait.
func (s *shares) activate(x *Share) {
	if !x.active() {
		x.band.weights += x.weight
		s.active++
	}
}

// deactivated accounts for a share that has given something up. Once none of its band is active, all
// are even.
func (s *shares) deactivated(x *Share) {
	if x.active() {
		return
	}
	s.active--
	b := x.band
	if b.weights -= x.weight; b.weights == 0 {
		b.virtual = max(b.virtual, b.latest)
	}
}
