package inspect

import "github.com/penstock-go/penstock/internal/engine"

// Snapshot copies the engine's counts, as of one reading of its clock. Each counter is exact; nodes,
// and the counters of a node, are read one after another while calls continue. Snapshot never delays a
// call: it takes the roll lock of one node after another, which calls only try to take.
func Snapshot(e *engine.Engine) Tree {
	r := newReader(e)
	t := r.head()
	details := newDetails(t.Rules)
	for _, p := range r.entrances() {
		t.Root.Children = append(t.Root.Children, r.copy(&p, 1, details))
	}
	for i := range t.Root.Children {
		t.Root.add(&t.Root.Children[i].Stats)
	}
	for _, p := range r.resources(nil) {
		t.Resources = append(t.Resources, r.copy(&p, 1, details))
	}
	return t
}

// copy copies the node at a place with its descendants.
func (r reader) copy(p *place, depth int, details details) Node {
	n := Node{Name: p.name, Kind: p.kind, Overflow: p.overflow}
	if p.counted != nil {
		n.read(p.counted, r.now, r.interval)
	}
	var below []Node
	for _, q := range r.below(nil, p, depth) {
		below = append(below, r.copy(&q, depth+1, details))
	}
	if p.kind == NodeResource {
		n.Origins, n.Details, n.Percentiles = below, details.of(p.name), p.resource.Percentiles(r.now)
		n.Units = p.resource.UnitStats()
	} else {
		n.Children = below
	}
	if p.counted == nil {
		n.Interval = r.interval
		for i := range below {
			n.add(&below[i].Stats)
		}
	}
	return n
}
