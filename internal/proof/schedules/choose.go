//go:build sim

package schedules

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// chooser decides which of the ready callers continues. me is the running caller, or nil if it
// can't continue.
type chooser interface {
	choose(s *Schedule, me *task) *task
	// played reports whether the schedule turned out to be one that was played before.
	played() bool
}

// random switches callers at each access with a chance of one in every. Rare switches find races
// that need a caller held up for long; choosing anew each time finds narrow races.
type random struct {
	rand  *rand.Rand
	every uint32
}

func newRandom(r *rand.Rand) random {
	return random{r, []uint32{1, 4, 16}[r.IntN(3)]}
}

func (c random) choose(s *Schedule, me *task) *task {
	if len(s.ready) == 1 {
		return s.ready[0]
	}
	draw := c.rand.Uint64()
	if me != nil && uint32(draw)%c.every != 0 {
		return me
	}
	return s.ready[draw>>32%uint64(len(s.ready))]
}

func (random) played() bool { return false }

// exhaustive plays every order of accesses that matters: if two schedules differ only in the order
// of accesses that don't clash, it plays one of them. (It keeps sleep sets, after Godefroid: once a
// caller's access has been tried first, it is not tried again on the other branches until something
// clashes with it.)
type exhaustive struct {
	path   []node
	at     int
	asleep set  // at the next point
	pruned bool // everything from here on has been played: run to the end in any order
}

func (c *exhaustive) played() bool { return c.pruned }

// node is a point of choice. The sets hold callers' numbers.
type node struct {
	taken   int
	enabled set
	asleep  set // not to be tried here
}

type set uint64

func (s set) has(i int) bool { return s>>i&1 == 1 }

func (c *exhaustive) begin() { c.at, c.asleep, c.pruned = 0, 0, false }

func (c *exhaustive) choose(s *Schedule, _ *task) *task {
	if c.pruned {
		return s.ready[0]
	}
	if c.at == len(c.path) {
		n := node{taken: -1, asleep: c.asleep}
		for _, t := range s.ready {
			n.enabled |= 1 << t.number
		}
		if !n.turn() {
			c.pruned = true
			return s.ready[0]
		}
		c.path = append(c.path, n)
	}
	n := c.path[c.at]
	c.at++
	t := s.tasks[n.taken]
	if !slices.Contains(s.ready, t) {
		panic("sim: the machine does not behave the same when it runs again")
	}
	c.asleep = 0
	for i, u := range s.tasks {
		if n.asleep.has(i) && !u.pending.clash(t.pending) {
			c.asleep |= 1 << i
		}
	}
	return t
}

// turn takes the next caller to try, and returns false if there is none.
func (n *node) turn() bool {
	todo := n.enabled &^ n.asleep
	n.taken = bits.TrailingZeros64(uint64(todo))
	return todo != 0
}

// next prepares the path that follows, and returns false after the last.
func (c *exhaustive) next() bool {
	for n := len(c.path); n > 0; n-- {
		last := &c.path[n-1]
		last.asleep |= 1 << last.taken
		if last.turn() {
			c.path = c.path[:n]
			return true
		}
	}
	return false
}
