package inspect

import (
	"reflect"
	"sync"

	"github.com/penstock-go/penstock/stat"
)

// packed is a [Tree] without histories in about a hundred bytes for each node, for
// readers that take their time: what they are sent is rendered as they read it. Nothing
// in it changes while it is read.
type packed struct {
	head    Tree
	details details
	times   times

	// The nodes are stored one after another, parents before children, and so are their names. The
	// calls of an entrance come before it, since it is their sum.
	nodes     []byte
	names     []string
	entrances []packedEntrance
	resources packedPlace

	starts []int64 // of the buckets of every node
	named  int     // bytes of names that the engine may drop meanwhile
}

// packedPlace is the beginning of that many nodes side by side.
type packedPlace struct{ node, name, count int }

type packedEntrance struct{ own, calls packedPlace }

// packs are those that are no longer read, so that reading a tree again and again makes no work for
// the garbage collector.
var packs = sync.Pool{New: func() any { return new(packed) }}

// recycle releases a copy that is no longer read.
func (p *packed) recycle() {
	clear(p.names)
	*p = packed{nodes: p.nodes[:0], names: p.names[:0], entrances: p.entrances[:0], starts: p.starts[:0]}
	packs.Put(p)
}

// end is where the next node would go.
func (p *packed) end(count int) packedPlace { return packedPlace{len(p.nodes), len(p.names), count} }

// size is about how many bytes it takes.
func (p *packed) size() int {
	size := cap(p.nodes) + p.named + sizeOf(p.names) + sizeOf(p.entrances) + sizeOf(p.details) + sizeOf(p.head.Rules) + p.times.size()
	for i := range p.head.Rules {
		size += weight(reflect.ValueOf(&p.head.Rules[i].Details).Elem())
	}
	return size
}

// sizeOf is the bytes of a slice, without those that its elements point to.
func sizeOf[T any](s []T) int { return cap(s) * int(reflect.TypeFor[T]().Size()) }

// expect makes room for as much as another took that ended there.
func (p *packed) expect(end packedPlace) {
	if cap(p.nodes) < end.node {
		p.nodes = make([]byte, 0, end.node+end.node/8)
	}
	if cap(p.names) < end.name {
		p.names = make([]string, 0, end.name+end.name/8)
	}
}

// apart are the counts that don't follow from the buckets.
func (f *Stats) apart() [3]*stat.Counts {
	return [...]*stat.Counts{&f.Minute, &f.LastSecond, &f.Lifetime}
}

const packedOverflow = 0x80 // beside a kind
