package replay

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/proof/model"
	"github.com/penstock-go/penstock/node"
)

const defaultContext = node.DefaultContext

// book records the calls of a trace in a list that is searched for every question. It computes our
// figures where they differ from Java's, and the counts of the windows and semaphores; and it is
// the evidence on which the table explains a difference.
type book struct {
	interval, width int64 // of the second window and of its buckets, ns
	calls           []*call
	below           map[place]place // the call node that a call node hangs below; zero for the entrance
	contexts        []string        // in the order in which they were first seen
	resources       []string
	seen            map[NodeRef]bool
	touched         map[NodeRef][]int64 // when Java read or wrote a node
}

// place is a call node.
type place struct{ context, resource string }

// call is one call, with our engine's verdict.
type call struct {
	m           *model.Call
	id          int
	parent      *call
	place       place
	origin      string
	inbound     bool
	prioritized bool
	units       int64 // at least 1
	args        []any
	atExit      []func() // of the machines for hotspot rules
	oddCount    bool     // Java uses a count below 1, or another one at exit

	asked    int64 // when it asked to enter
	wait     time.Duration
	released int64 // when its pass is counted: after the wait, if the clock moves
	borrowed bool  // the wait is for an upcoming bucket
	blocked  bool

	exited bool
	ended  int64
	failed bool

	lenders []NodeRef     // whose windows it may borrow from
	java    *Expect       // Java's outcome
	aside   string        // the row that explains a wait or rule other than Java's
	drift   time.Duration // how far the wait may be from Java's
	// The same on Java's clock, as long as the verdicts agree.
	javaAsked, javaReleased, javaEnded int64
}

func newBook(config Config) *book {
	interval := int64(config.interval())
	return &book{
		interval: interval, width: interval / int64(config.SampleCount),
		below: make(map[place]place), seen: make(map[NodeRef]bool), touched: make(map[NodeRef][]int64),
	}
}

// add records a call, and the nodes on which it is the first.
func (b *book) add(c *call) {
	b.calls = append(b.calls, c)
	if _, ok := b.below[c.place]; !ok {
		b.below[c.place] = place{}
		if c.parent != nil {
			b.below[c.place] = c.parent.place
		}
	}
	first := func(ref NodeRef, list *[]string, name string) {
		if !b.seen[ref] {
			b.seen[ref] = true
			*list = append(*list, name)
		}
	}
	first(NodeRef{Kind: "entrance", Context: c.place.context}, &b.contexts, c.place.context)
	first(NodeRef{Kind: "resource", Resource: c.place.resource}, &b.resources, c.place.resource)
	for _, ref := range c.nodes() {
		b.seen[ref] = true
	}
}

// nodes returns the nodes that count a call.
func (c *call) nodes() []NodeRef {
	refs := []NodeRef{
		{Kind: "call", Context: c.place.context, Resource: c.place.resource},
		{Kind: "resource", Resource: c.place.resource},
	}
	if c.origin != "" {
		refs = append(refs, NodeRef{Kind: "origin", Resource: c.place.resource, Origin: c.origin})
	}
	if c.inbound {
		refs = append(refs, NodeRef{Kind: "inbound"})
	}
	return refs
}

func (b *book) touch(now int64, refs ...NodeRef) {
	for _, ref := range refs {
		b.touched[ref] = append(b.touched[ref], now)
	}
}

// touchedIn reports whether Java read or wrote a node in [from, to).
func (b *book) touchedIn(ref NodeRef, from, to int64) bool {
	return slices.ContainsFunc(b.touched[ref], func(t int64) bool { return t >= from && t < to })
}

// exists reports whether a call has made the node.
func (b *book) exists(ref NodeRef) bool {
	switch {
	case ref.Kind == "inbound", ref.Kind == "root", ref.Kind == "entrance" && ref.Context == defaultContext:
		return true
	}
	return b.seen[ref]
}

// on reports whether the figures of a node include the call. Entrances and the root sum their
// direct children.
func (b *book) on(ref NodeRef, c *call) bool {
	switch ref.Kind {
	case "resource":
		return c.place.resource == ref.Resource
	case "origin":
		return c.place.resource == ref.Resource && c.origin == ref.Origin
	case "call":
		return c.place == place{ref.Context, ref.Resource}
	case "inbound":
		return c.inbound
	case "entrance":
		return c.place.context == ref.Context && b.below[c.place] == place{}
	case "root":
		return b.below[c.place] == place{}
	}
	return false
}

// children are the direct children of an entrance or of the root.
func (b *book) children(ref NodeRef) (children []NodeRef) {
	if ref.Kind == "root" {
		for _, context := range b.contexts {
			children = append(children, NodeRef{Kind: "entrance", Context: context})
		}
		return children
	}
	for at, parent := range b.below {
		if at.context == ref.Context && parent == (place{}) {
			children = append(children, NodeRef{Kind: "call", Context: at.context, Resource: at.resource})
		}
	}
	return children
}

// some reports whether a call on a node satisfies f.
func (b *book) some(ref NodeRef, f func(*call) bool) bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool { return b.on(ref, c) && f(c) })
}

// runs returns when the call runs, or would if its wait were not only recorded.
func (c *call) runs() int64 { return c.asked + int64(c.wait) }

// inFlight returns the running calls on a node, and their units.
func (b *book) inFlight(ref NodeRef, now int64) (calls, units int64) {
	for _, c := range b.calls {
		if !c.blocked && !c.exited && c.released <= now && b.on(ref, c) {
			calls++
			units += c.units
		}
	}
	return calls, units
}

// floor returns the largest multiple of width that is not above t.
func floor(t, width int64) int64 {
	r := t % width
	if r < 0 {
		r += width
	}
	return t - r
}
