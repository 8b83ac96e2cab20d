package engine

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
)

// # What a call fetches
//
// The limits of some rules are shared with other processes, and their state is elsewhere, behind a
// [Fetcher]. The process holds some units of such a limit on a lease. As long as they last, a call
// takes from them as from any other limit. A call that lacks units fetches them, and waits for
// that:
//
//   - All rules are asked, those of shared limits last. A call that some rule refuses lacks
//     nothing. A call that lacks units fetches all that it lacks in one round, before it takes
//     anything, and from then on holds what it got. The clock is read again, and the rules are
//     asked again.
//   - Taking never fetches. A call that lacks units at that point, because its rules were not asked
//     before or other calls were quicker, fetches them when all other rules have taken.
//   - Units of a lease are good for a short time only (Want.Fleeting). A call that has to wait for
//     another rule does not keep them meanwhile: it gives them back, or has not taken them, and
//     fetches them after its wait. Then it waits at most once more, for what it got.
//
// However often a call fetches, it waits for that, in all, at most the longest timeout of what it
// lacked first.

// Fetcher fetches what calls lack of limits that this process shares with others.
type Fetcher interface {
	// Fetch decides on all wants, and reserves what it grants. It waits for at most atMost; if that
	// is 0 it decides by what it has. The error is that of the context, if that ended first; then
	// nothing is reserved.
	Fetch(ctx context.Context, atMost time.Duration, wants []Want) error
}

// Want is what a call lacks of one limit.
type Want struct {
	Limit   any           // the fetcher's own
	Units   int64         // that the call takes
	MaxWait time.Duration // how long it would wait for what it is granted; 0: not at all

	// Holder takes back what is granted; By refuses the call if nothing is granted. Timeout is how
	// long the call may wait for the answer.
	Holder  Holder
	By      *core.BlockError
	Timeout time.Duration
	// UntilExit says that the call holds the units until it exits, Fleeting that they are good for
	// a short time only: a call that waits longer for something else must not keep them meanwhile.
	UntilExit, Fleeting bool

	// What the fetcher says: whether the want is granted, the fetcher's Token for it, and how long
	// the call then has to wait before it may run; Borrowed if that wait is for a coming bucket, in
	// which the call is counted.
	Got      bool
	Token    int64
	Wait     time.Duration
	Borrowed bool
}

// Sharer is a [Checker] for the rules of a family whose limits are shared. Where a family can
// have such rules, its Checker returns it on request, nil if there are none:
//
//	Shares() Sharer
//
// It is asked, and takes, after all other checkers. Where the call already holds units of a
// limit, such as what it has fetched, that limit is neither asked nor taken from again (see
// [Invocation.HeldFor]).
type Sharer interface {
	Checker
	// Wants makes the call want all that it doesn't hold, or no longer holds, see
	// [Invocation.Want]: it is also called after a wait, see [Invocation.HandBack].
	Wants(*Invocation)
}

// sharer is a Sharer with the name of its slot.
type sharer struct {
	Sharer
	slot string
}

// fetching is what a call lacks.
type fetching struct {
	from  Fetcher
	wants []Want
	left  int64 // what is left of the time that it may wait, once it fetches
}

// lacking is the refusal of a checker that isn't really refusing: it can't decide yet.
var needsMore = new(core.BlockError)

// untilFetched is the wait of a call that lacks something. A call that has to wait for another rule
// fetches after that wait.
const untilFetched = time.Nanosecond

// Want notes what the call lacks. If that was found in Ask, Ask returns this verdict once all other
// rules of the checker were asked: if one refuses the call, the call lacks nothing.
func (inv *Invocation) Want(from Fetcher, w Want) Verdict {
	if inv.fetching == nil {
		inv.fetching = new(fetching)
	}
	if !inv.wants { // what is there is of an earlier call, which was refused
		inv.fetching.clear()
		inv.wants = true
	}
	inv.fetching.from = from
	inv.fetching.wants = append(inv.fetching.wants, w)
	return Verdict{Block: needsMore}
}

// findWants finds what the call still lacks.
func (inv *Invocation) findWants() {
	for i, all := inv.step, inv.bound.sharers; i < len(all); i++ {
		inv.step = i
		all[i].Wants(inv)
	}
}

// Lacks reports whether the verdict says that the call lacks something.
func (v Verdict) NeedsMore() bool { return v.Block == needsMore }

// WantLater makes the call fetch what it lacks when all checkers have taken, after its wait if it
// has one.
func (inv *Invocation) WantLater() {
	inv.later = true
	inv.waits = true
}

// Patient reports whether the call may wait for what it fetches: not if it has done so already.
func (inv *Invocation) Patient() bool { return !inv.fetched }

// HeldFor returns what the call holds from a holder, and how long it has to wait before that is
// good; nil if it holds nothing.
func (inv *Invocation) HeldFor(h Holder) (r *Reservation, wait time.Duration) {
	for i := range inv.held {
		if r := &inv.held[i]; r.Holder == h {
			return r, time.Duration(max(0, r.Undo-inv.now))
		}
	}
	return nil, 0
}

// ReserveLeased notes units of a lease, which the call must not keep through a wait.
func (inv *Invocation) ReserveLeased(h Holder, units, token int64) {
	r := inv.reserve(units, token, 0, false)
	r.Holder, r.kind, r.fleeting = h, byLease, true
	inv.fleets = true
}

// lacksSome reports whether the call is known to lack something.
func (inv *Invocation) lacksSome() bool { return inv.wants && len(inv.fetching.wants) > 0 }

// clear drops all references, so that they keep nothing alive.
func (f *fetching) clear() {
	clear(f.wants)
	f.wants, f.from = f.wants[:0], nil
}

// fetch fetches in that context what the call lacks, which the call then holds. It returns the longest wait for
// what it got, or the rule that refuses the call, with the error of the context if that has ended.
// Where the fetcher or the clock panics, or ends the goroutine, the call is refused.
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
	inv.now = max(inv.now, e.Now()) // read once the call holds what it got, as the clock may panic
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

// hold notes what was granted. Its Undo is at first how long the call has to wait.
func (inv *Invocation) hold(w *Want) {
	r := inv.reserve(w.Units, w.Token, int64(max(0, w.Wait)), w.UntilExit)
	r.Holder, r.kind, r.fleeting = w.Holder, byLease, w.Fleeting
	inv.fleets = inv.fleets || w.Fleeting
}

// handBack gives back, before the call waits that long or for a permit, what is not good for as
// long. It keeps what becomes good only when the wait is over.
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
	*r = Reservation{Holder: nothing{}} // the numbers of the others don't change, see follows
}

// nothing is the holder of what was handed back.
type nothing struct{}

func (nothing) GiveBack(*Reservation, int64) {}

// goOn continues a call after its wait if the call still lacks something, or may. returned is called as soon
// as the call sleeps again, or has returned.
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

// fetchLater fetches what the call lacks when it has taken, and waited. It returns what fetch
// does. See clocks.Calling for returned.
func (inv *Invocation) fetchLater(returned *func()) (v Verdict, by *core.BlockError, cause error) {
	if inv.wants { // before its wait
		inv.fetching.clear()
	}
	inv.walk(wanting, &v)
	inv.later = false
	if inv.lacksSome() {
		v, by, cause = inv.fetch(clocks.Calling(inv.ctx, inv.engine.clock, returned))
	}
	if inv.fetched = true; v.Wait > 0 {
		inv.firm = v.Wait // its turns have come
	}
	return v, by, cause
}
