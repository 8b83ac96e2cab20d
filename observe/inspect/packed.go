package inspect

import (
	"reflect"
	"sync"

	"github.com/penstock-go/penstock/stat"
)

// packed is a [Tree] without histories, in about a hundred bytes per node, for slow readers:
// their replies are rendered as they read. It never changes while it is read.
type packed struct {
	head    Tree
	details details
	times   times
	units   units

	// Nodes are stored one after another, parents before children, and so are their names. The
	// calls of an entrance precede it, since it is their sum.
	nodes     []byte
	names     []string
	entrances []packedEntrance
	resources packedPlace

	starts []int64 // of the buckets of every node
	named  int     // bytes of names that the engine may drop in the meantime
}

// packedPlace is the start of count sibling nodes.
type packedPlace struct{ node, name, count int }

type packedEntrance struct{ own, calls packedPlace }

// packs pools copies that are no longer read, so that reading a tree repeatedly doesn't create
// garbage.
var packs = sync.Pool{New: func() any { return new(packed) }}

// recycle releases a copy that is no longer read.
func (p *packed) recycle() {
	clear(p.names)
	*p = packed{nodes: p.nodes[:0], names: p.names[:0], entrances: p.entrances[:0], starts: p.starts[:0]}
	packs.Put(p)
}

// end returns the position of the next node.
func (p *packed) end(count int) packedPlace { return packedPlace{len(p.nodes), len(p.names), count} }

// size returns its approximate size in bytes.
func (p *packed) size() int {
	size := cap(p.nodes) + p.named + sizeOf(p.names) + sizeOf(p.entrances) + sizeOf(p.details) + sizeOf(p.head.Rules) + p.times.size() + weight(reflect.ValueOf(p.units))
	for i := range p.head.Rules {
		size += weight(reflect.ValueOf(&p.head.Rules[i].Details).Elem())
	}
	return size
}

// sizeOf returns the bytes of a slice, without data that its elements point to.
func sizeOf[T any](s []T) int { return cap(s) * int(reflect.TypeFor[T]().Size()) }

// expect makes room for as much as an earlier copy, which ended at end, took.
func (p *packed) expect(end packedPlace) {
	if cap(p.nodes) < end.node {
		p.nodes = make([]byte, 0, end.node+end.node/8)
	}
	if cap(p.names) < end.name {
		p.names = make([]string, 0, end.name+end.name/8)
	}
}

// apart returns the counts that can't be derived from the buckets.
func (f *Stats) apart() [3]*stat.Counts {
	return [...]*stat.Counts{&f.Minute, &f.LastSecond, &f.Lifetime}
}

const packedOverflow = 0x80 // set in a kind
