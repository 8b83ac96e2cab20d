package meter

import (
	"math/bits"

	"github.com/penstock-go/penstock/core/argument"
)

// heapKind is an order of shares.
type heapKind int

const (
	byKey    heapKind = iota
	byHeld            // by units held per weight, then by key
	byLength          // by the length of the queue per weight, the most first
	heapKinds
)

// before reports whether a precedes b. No two shares are equal.
func (k heapKind) before(a, b *Share) bool {
	switch k {
	case byLength:
		if c := compareProducts(a.size(), b.weight, b.size(), a.weight); c != 0 {
			return c > 0
		}
		return a.id > b.id
	case byHeld:
		if c := compareProducts(a.held, b.weight, b.held, a.weight); c != 0 {
			return c < 0
		}
	}
	if a.key() != b.key() {
		return a.key() < b.key()
	}
	if c := compareProducts(a.held, b.weight, b.held, a.weight); c != 0 {
		return c < 0
	}
	return a.id < b.id
}

// compareProducts compares a·b with c·d, all at least 0.
func compareProducts(a, b, c, d int64) int {
	high1, low1 := bits.Mul64(uint64(a), uint64(b))
	high2, low2 := bits.Mul64(uint64(c), uint64(d))
	switch {
	case high1 < high2 || high1 == high2 && low1 < low2:
		return -1
	case high1 == high2 && low1 == low2:
		return 0
	}
	return 1
}

// shareHeap is a binary heap of shares. Each knows its position, counted from 1.
type shareHeap struct {
	kind heapKind
	list []*Share
}

func (h *shareHeap) first() *Share {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

func (h *shareHeap) add(x *Share) {
	h.list = append(h.list, x)
	x.heaps[h.kind] = len(h.list)
	h.up(len(h.list) - 1)
}

func (h *shareHeap) remove(x *Share) {
	i, last := x.heaps[h.kind]-1, len(h.list)-1
	h.swap(i, last)
	h.list[last] = nil
	h.list = h.list[:last]
	if x.heaps[h.kind] = 0; i < last {
		h.move(i)
	}
}

// move restores the order around the position of a share that has changed.
func (h *shareHeap) move(i int) {
	if !h.up(i) {
		h.down(i)
	}
}

func (h *shareHeap) up(i int) (moved bool) {
	for i > 0 && h.kind.before(h.list[i], h.list[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

func (h *shareHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.list); child++ {
			if h.kind.before(h.list[child], h.list[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *shareHeap) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].heaps[h.kind], h.list[j].heaps[h.kind] = i+1, j+1
}

// fix restores the order of the heaps once a share has changed.
func (s *shares) fix(x *Share) {
	for kind := range x.heaps {
		if i := x.heaps[kind]; i > 0 {
			x.band.heaps[kind].move(i - 1)
		}
	}
}

// shareTable finds the shares of tenants: a hash table with lists, which grows to fit the peak
// number of shares and no further.
type shareTable struct {
	buckets []*Share // length is a power of two
	n       int
}

func (t *shareTable) bucket(hash uint64) **Share {
	return &t.buckets[int(hash>>8)&(len(t.buckets)-1)] // the lowest bits choose among others
}

func (t *shareTable) find(name *argument.Value, level int, hash uint64) *Share {
	if t.n == 0 {
		return nil
	}
	x := *t.bucket(hash)
	for x != nil && (x.hash != hash || x.band.level != level || x.tenant.Name != *name) {
		x = x.next
	}
	return x
}

func (t *shareTable) add(x *Share) {
	if t.n++; t.n > len(t.buckets) {
		old := t.buckets
		t.buckets = make([]*Share, max(8, 2*len(old)))
		for _, first := range old {
			for y := first; y != nil; {
				next := y.next
				t.put(y)
				y = next
			}
		}
	}
	t.put(x)
}

func (t *shareTable) put(x *Share) {
	b := t.bucket(x.hash)
	x.next, *b = *b, x
}

func (t *shareTable) remove(x *Share) {
	b := t.bucket(x.hash)
	for *b != x {
		b = &(*b).next
	}
	*b, x.next = x.next, nil
	t.n--
}
