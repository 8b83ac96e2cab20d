package stat

import (
	"iter"
	"math"
	"time"
)

const minuteBuckets = 60

// minute holds the last 60 seconds, one by one. It is the largest part of a node, so it counts in
// 32 bits until a second exceeds them or a long-lived call ends, and in 64 bits afterwards. The
// zero value is empty and takes no memory. It is not safe for concurrent use.
type minute struct {
	narrow *LeapArray[narrow]
	wide   *LeapArray[Counts] // instead of narrow
}

// narrow is like [Counts], but for small numbers, in 40 bytes instead of 80. It has no field for
// long-lived calls, which few nodes have.
type narrow struct {
	rt                                                          int64
	pass, block, exception, complete, occupied, entered, exited uint32
	minRT                                                       uint32
}

// narrowed returns the counts as narrow, or false if a number is too large or there are long-lived
// calls.
func narrowed(c *Counts) (narrow, bool) {
	all := c.Pass | c.Block | c.Exception | c.Complete | c.Occupied | c.Entered | c.Exited | c.minRT
	if uint64(all) > math.MaxUint32 || c.LongLived != 0 {
		return narrow{}, false
	}
	return narrow{
		rt: int64(c.RT), minRT: uint32(c.minRT),
		pass: uint32(c.Pass), block: uint32(c.Block), exception: uint32(c.Exception), complete: uint32(c.Complete),
		occupied: uint32(c.Occupied), entered: uint32(c.Entered), exited: uint32(c.Exited),
	}, true
}

func (n *narrow) counts() Counts {
	return Counts{
		RT: time.Duration(n.rt), minRT: int64(n.minRT),
		Pass: int64(n.pass), Block: int64(n.block), Exception: int64(n.exception), Complete: int64(n.complete),
		Occupied: int64(n.occupied), Entered: int64(n.entered), Exited: int64(n.exited),
	}
}

// empty reports whether the minute takes no memory.
func (m *minute) empty() bool { return m.narrow == nil && m.wide == nil }

// add adds counts to the second that contains start, unless that is older than the minute.
func (m *minute) add(start int64, counts *Counts) {
	if m.empty() {
		m.narrow = newRing[narrow](minuteBuckets*int64(time.Second), minuteBuckets)
	}
	if m.wide == nil {
		second, ok := m.narrow.Open(start)
		if !ok {
			return
		}
		sum := second.Value.counts()
		sum.Add(counts)
		if small, ok := narrowed(&sum); ok {
			second.Value = small
			return
		}
		m.widen()
	}
	if second, ok := m.wide.Open(start); ok {
		second.Value.Add(counts)
	}
}

// widen switches to 64 bits.
func (m *minute) widen() {
	m.wide = newRing[Counts](minuteBuckets*int64(time.Second), minuteBuckets)
	for i := range m.narrow.buckets {
		if b := &m.narrow.buckets[i]; b.Start != never {
			second, _ := m.wide.Open(b.Start)
			second.Value = b.Value.counts()
		}
	}
	m.narrow = nil
}

// all yields the seconds that count at now, oldest first.
func (m *minute) all(now int64) iter.Seq2[int64, Counts] {
	return func(yield func(int64, Counts) bool) {
		if m.narrow != nil {
			for b := range m.narrow.All(now) {
				if !yield(b.Start, b.Value.counts()) {
					return
				}
			}
		}
		if m.wide != nil {
			for b := range m.wide.All(now) {
				if !yield(b.Start, b.Value) {
					return
				}
			}
		}
	}
}

// at returns the counts of the second that begins at start, or zero if it doesn't count at now.
func (m *minute) at(now, start int64) (counts Counts) {
	if m.narrow != nil {
		if b, ok := m.narrow.at(now, start); ok {
			return b.Value.counts()
		}
	}
	if m.wide != nil {
		if b, ok := m.wide.at(now, start); ok {
			return b.Value
		}
	}
	return counts
}
