package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// turns are the lease of a throttle: a run of turns that the member gives to its calls.
//
// Invariant: left turns remain, the first at next, each a spacing after the one before. Each goes
// to one call, or is lost when its time has passed.
//
// The throttle's mutex guards it.
type turns struct {
	next    int64
	left    int64
	spacing int64
}

// newTurns returns the turns that a reply grants. The first counts as one, however many units it is
// for; lag is the staleness of the member's clock.
func newTurns(c *store.Turn, received, lag int64) turns {
	return turns{received + atMost(c.Reply.Wait) + lag, c.Reply.Granted - c.Need + 1, int64(c.Spacing)}
}

// take gives a call of n units the turn of its last unit, and returns the time until then. If takes
// is false, it only looks. Turns that have passed are lost.
func (t *turns) take(now, n int64, maxWait time.Duration, takes bool) (wait time.Duration, ok bool) {
	t.pass(now)
	at := t.next + (n-1)*t.spacing
	if n > t.left || at-now > int64(maxWait) {
		return 0, false
	}
	if takes {
		t.next = at + t.spacing
		t.left -= n
	}
	return time.Duration(at - now), true
}

// drain takes up to n turns that nobody waits for, and returns how many.
func (t *turns) drain(now, n int64) (taken int64) {
	t.pass(now)
	taken = min(n, t.left)
	t.next += taken * t.spacing
	t.left -= taken
	return taken
}

// pass loses the turns that have passed.
func (t *turns) pass(now int64) {
	if t.left > 0 && t.next < now {
		lost := min(t.left, (now-t.next+t.spacing-1)/t.spacing)
		t.next += lost * t.spacing
		t.left -= lost
	}
}

// takeFirst gives the first turn to the call that it was requested for.
func (t *turns) takeFirst(now int64) (wait time.Duration) {
	wait = until(t.next, now)
	t.left--
	t.next += t.spacing
	return wait
}

const (
	// mostTurns is the maximum distance between the units of a command, see [store.Turn]. A call of
	// more units counts as that many in the store.
	mostTurns = int64(1<<52 - 1)
	// mostSpaced is the maximum of times, some 146 years.
	mostSpaced = int64(1 << 62)
	// longAgo stands for an unknown latest turn: any turn spaced from it has passed.
	longAgo = -mostSpaced
)

// times returns n times d, at most mostSpaced: with huge n the product doesn't fit an int64.
func times(n, d int64) int64 {
	if n > mostSpaced/max(1, d) {
		return mostSpaced
	}
	return n * d
}
