package hotspot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Lockout refuses a value for some time once the rule has refused calls of it in each of several
// consecutive intervals.
type Lockout struct {
	// After is the number of intervals, 1 to 100. They follow one another without a gap: interval n
	// begins n Intervals after the clock's zero, for all values at once.
	After int `yaml:"after,omitempty"`
	// For is the time for which the value is refused then, from the refusal on. 10 ms to 24 h.
	For time.Duration `yaml:"for,omitempty"`
}

// The ranges of a lockout.
const (
	MaxLockoutAfter = 100
	MaxLockout      = 24 * time.Hour
)

// checkLockout refuses lockouts that can't be.
func (r Rule) checkLockout() error {
	switch x := r.Lockout; {
	case x == (Lockout{}):
		return nil
	case r.Metric == Concurrency:
		return r.unread("lockout", "")
	case r.Per != spec.PerNone:
		return spec.BadField("lockout", "has no meaning for per, whose values are refused until their period ends: remove it, or add a rule with an interval")
	case r.Shared():
		return spec.BadField("lockout", "has no meaning for cluster: each member would lock out values on its own; remove lockout or cluster")
	case x.After < 1 || x.After > MaxLockoutAfter:
		return spec.BadField("lockout", "has after: %d: use a number of intervals from 1 to %d", x.After, MaxLockoutAfter)
	case x.For == 0:
		return spec.BadField("lockout", "has no for: add how long a value is refused, from %v to %v", MinInterval, MaxLockout)
	case x.For < MinInterval || x.For > MaxLockout:
		return spec.BadField("lockout", "has for: %v: use a duration from %v to %v", x.For, MinInterval, MaxLockout)
	}
	return nil
}

// lockout is the state of a value under a rule with a lockout. A refusal within it changes nothing, so
// it ends when it was to end.
type lockout struct {
	streak  int   // consecutive intervals with a refusal, up to that of the latest
	refused int64 // time of the latest refusal outside of a lockout
	until   int64 // end of the latest lockout
}

// locksOut reports whether the rule has a lockout.
func (r *Rule) locksOut() bool { return r.Lockout.After > 0 }

// interval returns the number of the interval of a time.
func (c *controller) interval(t int64) int64 {
	n := t / int64(c.rule.Interval)
	if t%int64(c.rule.Interval) < 0 {
		n--
	}
	return n
}

// lockedOutLocked reports whether a cell's value is locked out, and for how long. x may be nil.
func (c *controller) lockedOutLocked(x *cell, now int64) (left time.Duration, locked bool) {
	if !c.rule.locksOut() || x == nil || x.extras == nil || now >= x.extras.lockout.until {
		return 0, false
	}
	return time.Duration(x.extras.lockout.until - now), true
}

// refusedLocked counts a refusal of a cell's value. The value is locked out if it was refused in enough
// intervals in a row, unless half of the shard's cells are: otherwise values that are locked out could
// take the places of all others. Values without a cell are not locked out.
func (c *controller) refusedLocked(x *cell, now int64) {
	x.refused++
	if !c.rule.locksOut() || x.isRest() {
		return
	}
	l := &x.extrasLocked().lockout
	if now < l.until {
		return
	}
	switch n, last := c.interval(now), c.interval(l.refused); {
	case l.streak > 0 && n <= last:
		return
	case l.streak > 0 && n == last+1:
		l.streak++
	default:
		l.streak = 1
	}
	l.refused = now
	if l.streak < c.rule.Lockout.After {
		return
	}
	if !x.shard.locksLocked(x, now, now+int64(c.rule.Lockout.For)) {
		c.values.lockoutsMissed.Add(1)
		return
	}
	l.streak, l.until = 0, now+int64(c.rule.Lockout.For)
	c.values.lockouts.Add(1)
}

// locksLocked reports whether a cell may be locked out until a time, and counts it as such.
func (s *shard) locksLocked(x *cell, now, until int64) bool {
	if x.named {
		return true
	}
	most := max(1, s.room/2)
	if len(s.locks) >= most {
		s.locks = slices.DeleteFunc(s.locks, func(end int64) bool { return end <= now })
	}
	if len(s.locks) >= most {
		return false
	}
	s.locks = append(s.locks, until)
	return true
}

// keepsLocked reports whether a lockout, or the intervals that may lead to one, must be kept.
func (l *lockout) keepsLocked(c *controller, now int64) bool {
	return now < l.until || l.streak > 0 && c.interval(now) <= c.interval(l.refused)+1
}

// LockedValue is a value that is locked out.
type LockedValue struct {
	Resource string    `json:"resource"`
	Value    string    `json:"value"`
	Until    time.Time `json:"until"`
}

// addLocked adds the value of a cell if it is locked out. At most ten are listed, with the longest first.
func (f *Stats) addLocked(c *controller, x *cell, now int64) {
	if _, locked := c.lockedOutLocked(x, now); !locked {
		return
	}
	f.Locked++
	at := LockedValue{c.refusal.Resource, x.value.String(), time.Unix(0, x.extras.lockout.until).UTC()}
	i, _ := slices.BinarySearchFunc(f.LockedValues, at, func(a, b LockedValue) int {
		return cmp.Or(b.Until.Compare(a.Until), strings.Compare(a.Value, b.Value), strings.Compare(a.Resource, b.Resource))
	})
	f.LockedValues = slices.Insert(f.LockedValues, i, at)
	f.LockedValues = f.LockedValues[:min(len(f.LockedValues), topValues)]
}

// lockedLine returns the values that are locked out, as text.
func (f *Stats) lockedLine(at time.Time) string {
	return fmt.Sprintf("%d locked out, %d lockouts so far: ", f.Locked, f.Lockouts) + shown.Few(len(f.LockedValues), func(i int) string {
		v := f.LockedValues[i]
		return shown.Label(v.Value) + " for another " + shown.Duration(v.Until.Sub(at))
	})
}
