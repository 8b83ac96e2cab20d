package replay

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
)

// inspect compares the figures of the tree. Every figure must equal the book's; and it must equal
// Java's, unless the table explains the difference.
func (j *judge) inspect(op *Op) {
	if op.Node.Context == "" && (op.Node.Kind == "call" || op.Node.Kind == "entrance") {
		op.Node.Context = defaultContext
	}
	tree := j.guard.Tree()
	if op.Kind != "history" { // which covers the minute
		j.book.touch(j.due, j.read(op.Node)...)
	}
	switch op.Kind {
	case "tree":
		got, want := treeOf(&tree.Root), op.Expect.Tree
		if j.diverged() {
			want = got // for its shape
		}
		j.compareTree(got, want, "")
	case "snapshot":
		n := j.find(tree, op.Node, op.Expect.Snapshot != nil)
		if n != nil {
			j.compareFigures(op.Node, snapshotOf(n), op.Expect.Snapshot)
		}
	case "history":
		n := j.find(tree, op.Node, op.Expect.Seconds != nil)
		if n != nil {
			j.compareHistory(op.Node, historyOf(n, j.epoch), op.Expect.Seconds)
		}
	}
}

// read lists the nodes that Java reads to show one; for the tree, all call nodes.
func (j *judge) read(ref NodeRef) (refs []NodeRef) {
	if ref.Kind != "" && ref.Kind != "entrance" && ref.Kind != "root" {
		return []NodeRef{ref}
	}
	for at := range j.book.below {
		if ref.Kind != "entrance" || at.context == ref.Context {
			refs = append(refs, NodeRef{Kind: "call", Context: at.context, Resource: at.resource})
		}
	}
	return refs
}

// find returns the node that ref names, or nil if it correctly doesn't exist.
func (j *judge) find(tree inspect.Tree, ref NodeRef, wanted bool) *inspect.Node {
	n := find(tree, ref)
	if n == nil && j.outcome.Row == "A11 F13" { // it shares the overflow node
		return nil
	}
	if n == nil || named(n) && !j.book.exists(ref) {
		if j.book.exists(ref) || wanted && !j.diverged() {
			j.fail("there is no node %v", ref)
		}
		return nil
	}
	if !wanted && !j.diverged() {
		j.fail("there is a node %v", ref)
		return nil
	}
	return n
}

// compareFigures compares the figures of one node that are in want, or all of them if that doesn't
// matter.
func (j *judge) compareFigures(ref NodeRef, got, want figures) {
	if j.diverged() {
		want = got
	}
	book := j.book.snapshot(ref, j.due)
	if book == nil {
		j.fail("%v should not be there", ref)
		return
	}
	book["waiting"] = float64(j.waiting(ref))
	for _, field := range slices.Sorted(maps.Keys(want)) {
		j.compare(difference{ref: ref, field: field, want: want[field], got: got[field]}, book[field])
	}
}

// waiting returns the units that a node must show as borrowed: those under a QPS rule.
func (j *judge) waiting(ref NodeRef) (units int64) {
	if ref.Kind == "entrance" || ref.Kind == "root" {
		for _, child := range j.book.children(ref) {
			units += j.waiting(child)
		}
	} else if j.metered(ref) {
		units = j.unitsOn(ref, nil).Coming
	}
	return units
}

// compareHistory compares the seconds with events.
func (j *judge) compareHistory(ref NodeRef, got, want []figures) {
	gotAt, wantAt, bookAt := byStart(got), byStart(want), byStart(j.book.history(ref, j.due, j.epoch))
	starts := slices.AppendSeq(slices.Collect(maps.Keys(gotAt)), maps.Keys(wantAt))
	starts = slices.AppendSeq(starts, maps.Keys(bookAt))
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		for _, field := range historyFigures { // a missing second has only zeros
			j.compare(difference{
				ref: ref, field: field, want: wantAt[start][field], got: gotAt[start][field],
				history: true, second: j.epoch + start*int64(time.Millisecond),
			}, bookAt[start][field])
		}
	}
}

var historyFigures = []string{"pass", "block", "success", "exception", "avgRt", "occupiedPass"}

func byStart(seconds []figures) map[int64]figures {
	at := make(map[int64]figures)
	for _, second := range seconds {
		at[int64(second["t"])] = second
	}
	return at
}

// compareTree compares the shape, and the figures of every node.
func (j *judge) compareTree(got, want *treeNode, context string) {
	if got.Name != want.Name || got.Kind != want.Kind || len(got.Children) != len(want.Children) {
		j.fail("expected %s %q with %d children, got %s %q with %d",
			want.Kind, want.Name, len(want.Children), got.Kind, got.Name, len(got.Children))
		return
	}
	ref := NodeRef{Kind: want.Kind}
	switch want.Kind {
	case "entrance":
		if context = want.Name; context == node.SentinelDefaultContext {
			context = defaultContext
		}
		ref.Context = context
	case "call":
		ref.Context, ref.Resource = context, want.Name
	}
	j.compareFigures(ref, got.Figures, want.Figures)
	for i := range got.Children {
		j.compareTree(got.Children[i], want.Children[i], context)
	}
}

// compare compares one figure with the book and with the trace.
func (j *judge) compare(d difference, book float64) {
	d.player = j.player
	if !near(d.got, book) {
		j.fail("%v %s: the book has %v, got %v (the trace has %v)", d.ref, d.field, book, d.got, d.want)
		return
	}
	switch {
	case j.diverged():
	case near(d.got, d.want):
		j.outcome.Figures++
	default:
		j.explain(d)
	}
}

// explain looks for the row that explains a difference.
func (j *judge) explain(d difference) {
	d.player = j.player
	for _, r := range j.table {
		if r.figure != nil && r.figure(&d) {
			j.outcome.Explained[r.id]++
			return
		}
	}
	j.fail("%v %s: expected %v, got %v", d.ref, d.field, d.want, d.got)
}

// near reports whether two figures are equal. They are quotients of small integers, and our average
// response times are whole nanoseconds.
func near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	const nanosecond = 1.1e-6 // in ms
	return math.Abs(a-b) <= max(1e-9*max(math.Abs(a), math.Abs(b)), nanosecond)
}
