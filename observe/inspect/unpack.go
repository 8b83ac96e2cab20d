package inspect

import (
	"encoding/binary"
	"slices"
)

func (p *packed) view() view {
	return view{&p.head, p.details, p.times, p.units, p.eachCall, p.eachResource}
}

func (p *packed) eachCall(yield func(visit) bool) {
	last := len(p.entrances) - 1
	for last > 0 && p.entrances[last].calls.count == 0 {
		last--
	}
	if !yield(visit{&p.head.Root, 0, len(p.entrances), true}) {
		return
	}
	u := unpacker{packed: p}
	for i, e := range p.entrances {
		u.goTo(e.own)
		u.next()
		if !yield(visit{&u.node, 1, e.calls.count, i == last}) {
			return
		}
		u.goTo(e.calls)
		if !u.all(e.calls.count, 2, yield) {
			return
		}
	}
}

func (p *packed) eachResource(yield func(visit) bool) {
	u := unpacker{packed: p}
	u.goTo(p.resources)
	u.all(p.resources.count, 0, yield)
}

// unpacker reads one node after another.
type unpacker struct {
	*packed
	rest  []byte
	names []string
	node  Node // the latest
}

func (u *unpacker) goTo(place packedPlace) {
	u.rest, u.names = u.nodes[place.node:], u.packed.names[place.name:]
}

// all visits count sibling nodes with their descendants.
func (u *unpacker) all(count, depth int, yield func(visit) bool) bool {
	for i := range count {
		below := u.next()
		if !yield(visit{&u.node, depth, below, i == count-1}) || !u.all(below, depth+1, yield) {
			return false
		}
	}
	return true
}

// next reads a node and returns the number of its children.
func (u *unpacker) next() int {
	n := &u.node
	kind := u.rest[0]
	u.rest = u.rest[1:]
	below, buckets := u.uvarint(), u.uvarint()
	*n = Node{
		Name: u.names[0], Kind: NodeKind(kind &^ packedOverflow), Overflow: kind&packedOverflow != 0,
		Stats: Stats{Interval: u.head.Root.Interval, Buckets: slices.Grow(n.Buckets[:0], buckets)[:buckets]},
	}
	u.names = u.names[1:]
	for i := range n.Buckets {
		b := &n.Buckets[i]
		b.Start = u.starts[i]
		u.rest = b.Value.Unpack(u.rest)
		n.Second.Add(&b.Value)
	}
	for _, counts := range n.apart() {
		u.rest = counts.Unpack(u.rest)
	}
	n.InFlight, n.Waiting = u.varint(), u.varint()
	if n.Kind == NodeResource {
		n.Details, n.Percentiles, n.Units = u.details.of(n.Name), u.times[n.Name], u.units[n.Name]
	}
	return below
}

func (u *unpacker) uvarint() int {
	n, size := binary.Uvarint(u.rest)
	u.rest = u.rest[size:]
	return int(n)
}

func (u *unpacker) varint() int64 {
	n, size := binary.Varint(u.rest)
	u.rest = u.rest[size:]
	return n
}
