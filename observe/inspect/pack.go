package inspect

import (
	"encoding/binary"
	"sync"

	"github.com/penstock-go/penstock/internal/engine"
)

// pack copies the engine's counts, like [Snapshot]. It allocates about as much memory as a previous
// copy took, which ended at expected.
func pack(e *engine.Engine, expected packedPlace) *packed {
	w := packers.Get().(*packer)
	w.from, w.to = newReader(e), packs.Get().(*packed)
	w.to.expect(expected)
	w.tree()
	return w.done()
}

// packer copies one tree.
type packer struct {
	from   reader
	to     *packed
	places []place // a stack
	node   Node    // the latest
}

// packers pools idle packers.
var packers = sync.Pool{New: func() any { return new(packer) }}

func (w *packer) done() *packed {
	p := w.to
	clear(w.places[:cap(w.places)])
	*w = packer{places: w.places[:0], node: Node{Stats: Stats{Buckets: w.node.Buckets, History: w.node.History}}}
	packers.Put(w)
	return p
}

func (w *packer) tree() {
	p := w.to
	p.head = w.from.head()
	p.details = newDetails(p.head.Rules)
	for _, e := range w.from.entrances() {
		sum := Node{Name: e.name, Kind: e.kind, Overflow: e.overflow, Stats: Stats{Interval: w.from.interval}}
		w.places = w.from.below(w.places[:0], &e, 1)
		calls := p.end(len(w.places))
		w.all(0, 2, &sum.Stats)
		p.entrances = append(p.entrances, packedEntrance{p.end(1), calls})
		w.put(&sum, calls.count)
		p.head.Root.add(&sum.Stats)
	}
	w.places = w.from.resources(w.places[:0])
	p.resources = p.end(len(w.places))
	w.all(0, 1, nil)
}

// all copies the nodes of the stack starting at first, with their descendants, and pops them. It adds
// their counts to sum, unless that is nil.
func (w *packer) all(first, depth int, sum *Stats) {
	end := len(w.places)
	for i := first; i < end; i++ {
		p := w.places[i]
		w.node.Name, w.node.Kind, w.node.Overflow = p.name, p.kind, p.overflow
		w.node.read(p.counted, w.from.now, w.from.interval)
		w.node.History = w.node.History[:0]
		if sum != nil {
			sum.add(&w.node.Stats)
		}
		w.places = w.from.below(w.places, &p, depth)
		if p.resource != nil {
			w.to.times.add(p.name, p.resource.Percentiles(w.from.now))
			w.to.units.add(p.name, p.resource.UnitStats())
		}
		w.put(&w.node, len(w.places)-end)
		w.all(end, depth+1, nil)
	}
	w.places = w.places[:first]
}

func (w *packer) put(n *Node, below int) {
	p := w.to
	if n.Kind != NodeCall { // a call has its resource's name
		p.named += len(n.Name)
	}
	if len(p.starts) == 0 { // the same for all nodes
		for _, b := range n.Buckets {
			p.starts = append(p.starts, b.Start)
		}
	}
	p.names = append(p.names, n.Name)
	kind := byte(n.Kind)
	if n.Overflow {
		kind |= packedOverflow
	}
	b := binary.AppendUvarint(append(p.nodes, kind), uint64(below))
	b = binary.AppendUvarint(b, uint64(len(n.Buckets)))
	for i := range n.Buckets {
		b = n.Buckets[i].Value.Pack(b)
	}
	for _, counts := range n.apart() {
		b = counts.Pack(b)
	}
	b = binary.AppendVarint(b, n.InFlight)
	p.nodes = binary.AppendVarint(b, n.Waiting)
}
