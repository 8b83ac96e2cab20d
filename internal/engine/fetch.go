package engine

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
)

// # Fetching shared units
//
// The limits of some rules are shared with other processes, and their state is elsewhere, behind a
// [Fetcher]. The process holds some units of such a limit on a lease. As long as they last, a call
// takes from them as from any other limit. A call that needs more units fetches them, and waits for
// that:
//
//   - All rules are asked, rules with shared limits last. A call that some rule rejects needs
//     nothing. A call that needs units fetches all of them in one round, before it takes anything,
//     and from then on holds them. The clock is read again, and the rules are asked again.
//   - Taking never fetches. A call that needs units at that point, because its rules were not asked
//     before or other calls were quicker, fetches them when all other rules have taken.
//   - Units of a lease are valid for a short time only (Want.Fleeting). A call that has to wait for
//     another rule does not hold them during its wait: it gives them back, or has not taken them,
//     and fetches them afterwards. Then it waits at most once more, for the fetched units.
//
// Regardless of the number of its fetches, a call waits for them for at most the longest timeout of
// its first wants.

// Fetcher fetches the units that calls need of limits shared with other processes.
type Fetcher interface {
	// Fetch decides on all wants, and reserves its grants. It waits for at most atMost; if that is
	// 0 it decides locally. If the context ends first, it returns the context's error and reserves
	// nothing.
	Fetch(ctx context.Context, atMost time.Duration, wants []Want) error
}

// Want is a call's need for units of one limit.
type Want struct {
	Limit   any           // of the fetcher
	Units   int64         // units that the call takes
	MaxWait time.Duration // maximum wait of the call for the grant; 0 means none

	// Holder takes back a grant; By rejects the call without one. Timeout is the maximum wait of
	// the call for the reply.
	Holder  Holder
	By      *core.BlockError
	Timeout time.Duration
	Unit    string // kind of the units, see [Invocation.SettleBy]; empty for calls
	// UntilExit is true if the call holds the units until it exits, Fleeting if they are valid for
	// a short time only: a call that waits longer for something else must not keep them while it
	// waits.
	UntilExit, Fleeting bool

	// The fetcher's reply: whether the want is granted, the fetcher's Token for it, and the wait of
	// the call before it may run. Borrowed is set if that wait is for a later bucket, in which the
	// call is counted.
	Got      bool
	Token    int64
	Wait     time.Duration
	Borrowed bool
}

// Sharer is a [Checker] for rules with shared limits. A family that can have such rules has a
// Checker with this method, which returns nil if there are none:
//
//	Shares() Sharer
//
// It is asked, and takes, after all other checkers. If the call already holds units of a limit,
// such as fetched ones, that limit is neither asked nor taken from again (see
// [Invocation.HeldFor]).
type Sharer interface {
	Checker
	// Wants makes the call want everything that it doesn't hold, or no longer holds; see
	// [Invocation.Want]. It is also called after a wait; see [Invocation.HandBack].
	Wants(*Invocation)
}

// sharer is a Sharer with the name of its slot.
type sharer struct {
	Sharer
	slot string
}

// fetching holds the wants of a call.
type fetching struct {
	from  Fetcher
	wants []Want
	left  int64 // remaining time that the call may wait, once it fetches
}

// needsMore is the rejection of a checker that can't decide yet.
var needsMore = new(core.BlockError)

// untilFetched is the wait of a call that has wants. A call that has to wait for another rule
// fetches after that wait.
const untilFetched = time.Nanosecond

// Want records a need of the call. In Ask, return this verdict only once all other rules of the
// checker were asked: if one of them rejects the call, the call needs nothing.
func (inv *Invocation) Want(from Fetcher, w Want) Verdict {
	if inv.fetching == nil {
		inv.fetching = new(fetching)
	}
	if !inv.wants { // leftover wants of an earlier call, which was rejected
		inv.fetching.clear()
		inv.wants = true
	}
	inv.fetching.from = from
	inv.fetching.wants = append(inv.fetching.wants, w)
	return Verdict{Block: needsMore}
}

// findWants collects the remaining wants of the call.
func (inv *Invocation) findWants() {
	for i, all := inv.step, inv.bound.sharers; i < len(all); i++ {
		inv.step = i
		all[i].Wants(inv)
	}
}

// NeedsMore reports whether the verdict says that the call has wants.
func (v Verdict) NeedsMore() bool { return v.Block == needsMore }

// WantLater makes the call fetch its wants when all checkers have taken, after its wait if it has
// one.
func (inv *Invocation) WantLater() {
	inv.later = true
	inv.waits = true
}

// Patient reports whether the call may wait for a fetch. It may do so only once.
func (inv *Invocation) Patient() bool { return !inv.fetched }

// HeldFor returns the call's reservation with a holder, and the wait until it is valid; or nil if
// it holds nothing.
func (inv *Invocation) HeldFor(h Holder) (r *Reservation, wait time.Duration) {
	for i := range inv.held {
		if r := &inv.held[i]; r.Holder == h {
			return r, time.Duration(max(0, r.Undo-inv.now))
		}
	}
	return nil, 0
}

// ReserveLeased records units of a lease, which the call must not keep through a wait.
func (inv *Invocation) ReserveLeased(h Holder, units, token int64) {
	r := inv.reserve(units, token, 0, false)
	r.Holder, r.kind, r.fleeting = h, byLease, true
	inv.holdsFleeting = true
}

// wantsSome reports whether the call is known to have wants.
func (inv *Invocation) wantsSome() bool { return inv.wants && len(inv.fetching.wants) > 0 }

// clear drops all references, so that they keep nothing alive.
func (f *fetching) clear() {
	clear(f.wants)
	f.wants, f.from = f.wants[:0], nil
}

// fetch fetches the wants of the call with that context; the call then holds them. It returns the
// longest wait for the grants, or the rule that rejects the call, with the error of the context if
// that has ended. If the fetcher or the clock panics, or ends the goroutine, the call is rejected.
func (inv *Invocation) fetch(ctx context.Context) (v Verdict, by *core.BlockError, cause error) {
	f, e, over := inv.fetching, inv.engine, false
	by = inv.named(f.wants[0].By)
	defer func() {
		f.clear()
		if !over {
			_ = inv.refuse(by, nil)
		}
	}()
	if !inv.fetches {
		inv.fetches, f.left = true, 0
		for i := range f.wants {
			f.left = max(f.left, int64(f.wants[i].Timeout))
		}
	}
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	first, began := len(inv.held), inv.now
	if cause = f.from.Fetch(ctx, time.Duration(max(0, f.left)), f.wants); cause == nil {
		by = nil
		for i := range f.wants {
			switch w := &f.wants[i]; {
			case w.Got:
				inv.hold(w)
				v.longest(Verdict{Wait: w.Wait, By: w.By, Borrowed: w.Borrowed})
			case by == nil:
				by = inv.named(w.By)
			}
		}
	}
	inv.now = max(inv.now, e.Now()) // read once the call holds its grants, because the clock may panic
	inv.waited = inv.now - inv.began
	f.left -= inv.now - began
	for i := range inv.held[first:] {
		if r := &inv.held[first+i]; r.Undo > 0 {
			r.Undo += inv.now
		}
	}
	over = true
	return v, by, cause
}

// hold records a grant. Its Undo is at first the wait of the call.
func (inv *Invocation) hold(w *Want) {
	r := inv.reserve(w.Units, w.Token, int64(max(0, w.Wait)), w.UntilExit)
	r.Holder, r.kind, r.fleeting = w.Holder, byLease, w.Fleeting
	inv.holdsFleeting = inv.holdsFleeting || w.Fleeting
	if w.Unit != "" {
		inv.SettleBy(w.Unit)
	}
}

// handBack gives back, before the call waits that long or for a permit, units that expire earlier.
// It keeps units that become valid only when the wait ends.
func (inv *Invocation) handBack(wait time.Duration) {
	until := inv.now + int64(wait)
	if inv.Awaits() {
		until = math.MaxInt64
	}
	for i := len(inv.held) - 1; i >= 0; i-- {
		if r := &inv.held[i]; r.fleeting && r.Undo < until {
			inv.HandBack(r)
		}
	}
}

// HandBack gives back one of the reservations, which the call then no longer holds.
func (inv *Invocation) HandBack(r *Reservation) {
	r.giveBack(inv)
	*r = Reservation{Holder: nothing{}} // the numbers of the others don't change; see follows
}

// nothing is the holder of reservations that were handed back.
type nothing struct{}

func (nothing) GiveBack(*Reservation, int64) {}

// goOn continues a call after its wait if the call still wants something, or might. returned is
// called as soon as the call sleeps again, or has returned.
func (inv *Invocation) goOn(returned func()) (Entry, error) {
	defer func() { returned() }()
	v, by, cause := inv.fetchLater(&returned)
	switch {
	case by != nil:
		return Entry{}, inv.refuse(by, cause)
	case v.Wait > 0:
		return inv.queue(v, returned)
	}
	if inv.walk(rechecking, &v) == refused {
		inv.recycle()
		return Entry{}, v.Block
	}
	return inv.entry(), nil
}

// fetchLater fetches the wants of a call that has taken, and waited. Its results are those of
// fetch. See clocks.Calling for returned.
func (inv *Invocation) fetchLater(returned *func()) (v Verdict, by *core.BlockError, cause error) {
	if inv.wants { // before its wait
		inv.fetching.clear()
	}
	inv.walk(wanting, &v)
	inv.later = false
	if inv.wantsSome() {
		v, by, cause = inv.fetch(clocks.Calling(inv.ctx, inv.engine.clock, returned))
	}
	if inv.fetched = true; v.Wait > 0 {
		inv.firm = v.Wait // its turns are due
	}
	return v, by, cause
}
