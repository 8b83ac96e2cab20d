package golden

import (
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// inspect compares what the tree shows. Every figure must be the book's; and it must
// be Java's, unless the table explains why not.
func (j *judge) inspect(op *Op) {
	if op.Node.Context == "" && (op.Node.Kind == "call" || op.Node.Kind == "entrance") {
		op.Node.Context = defaultContext
	}
	tree := j.guard.Tree()
	j.book.touchAll(op, j.clock.Now())
	switch op.Kind {
	case "tree":
		got, want := treeOf(&tree.Root), op.Expect.Tree
		if j.diverged() {
			want = got // whose figures are compared with the book
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

// find returns the node that ref names, or nil if rightly there is none.
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

// compareFigures compares the figures of one node, as far as want has them.
func (j *judge) compareFigures(ref NodeRef, got, want figures) {
	now := j.clock.Now()
	book := j.book.snapshot(ref, now, j.metered(ref))
	if book == nil {
		j.fail("%v should not be there", ref)
		return
	}
	for _, field := range slices.Sorted(maps.Keys(want)) {
		j.compare(difference{
			player: j.player, ref: ref, field: field, want: want[field], got: got[field],
			from: floor(now, j.book.width) + j.book.width - j.book.interval, to: now + 1,
		}, book[field])
	}
}

func (j *judge) compareHistory(ref NodeRef, got, want []figures) {
	book := j.book.history(ref, j.clock.Now(), j.epoch)
	byStart := func(list []figures) map[int64]figures {
		m := make(map[int64]figures)
		for _, f := range list {
			m[int64(f["t"])] = f
		}
		return m
	}
	gotBy, wantBy, bookBy := byStart(got), byStart(want), byStart(book)
	for start, f := range bookBy {
		for field := range f {
			if field == "t" {
				continue // it may be a second in which nothing happened to Java
			}
			from := j.epoch + start*int64(time.Millisecond)
			j.compare(difference{
				player: j.player, ref: ref, field: field, history: true, want: wantBy[start][field], got: gotBy[start][field],
				from: from, to: from + int64(time.Second),
			}, f[field])
		}
		delete(gotBy, start)
		delete(wantBy, start)
	}
	if len(gotBy) > 0 {
		j.fail("%v shows seconds %v in which nothing happened", ref, slices.Sorted(maps.Keys(gotBy)))
	}
	for start, f := range wantBy { // seconds in which something happened to Java alone
		for field, want := range f {
			if field != "t" {
				j.compare(difference{player: j.player, ref: ref, field: field, history: true, want: want, from: start, to: start}, 0)
			}
		}
	}
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
		context = want.Name
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
	unsure := d.field == "waiting" && d.book.some(d.ref, func(c *call) bool { return c.unsure })
	if !near(d.got, book) && !unsure {
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

// explain looks for the row that a difference follows from.
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
