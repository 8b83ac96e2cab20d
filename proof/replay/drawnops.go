package replay

import "cmp"

// op draws what happens next, and when.
func (d *drawer) op() *Op {
	switch {
	case len(d.planned) > 0:
	case d.often(4):
		d.plan()
	case len(d.system) > 0 && d.often(2):
		d.rhythm()
	}
	if len(d.planned) > 0 {
		next := d.planned[0]
		d.planned = d.planned[1:]
		return next()
	}
	d.pass()
	op := &Op{T: d.now}
	switch n := d.IntN(100); {
	case n < 55:
		d.enter(op)
	case n < 90:
		d.exit(op)
	case n < 93:
		d.change(op)
	case n < 96:
		op.Kind, op.Load, op.CPU = "setSystem", new(pick(d, 0.0, 3)), new(pick(d, 0.0, 0.9))
	case n < 97:
		op.Kind = "tree"
	default:
		op.Kind = pick(d, "snapshot", "snapshot", "history")
		op.Node = pick(d,
			NodeRef{Kind: "resource", Resource: d.resource()}, NodeRef{Kind: "inbound"},
			NodeRef{Kind: "origin", Resource: d.resource(), Origin: "appA"},
			NodeRef{Kind: "call", Resource: d.resource(), Context: "web"})
	}
	return op
}

// plan has calls queue behind one that fails meanwhile, and more come when that is over and
// a breaker may let them in again.
func (d *drawer) plan() {
	like := d.enter(&Op{})
	var first int
	comes := func() *Op {
		op := d.enter(&Op{T: d.now})
		op.Resource, op.Args, op.Parent, op.Context, op.Origin = like.Resource, like.Args, nil, like.Context, like.Origin
		first = cmp.Or(first, op.ID)
		return op
	}
	fails := func() *Op { return &Op{T: d.now, Kind: "exit", ID: first, Error: true} }
	later := func() *Op {
		d.now += pick(d, int64(700), 1000, 2000) + d.Int64N(300)
		return comes()
	}
	d.planned = []func() *Op{comes, comes, comes, fails, later, comes, comes}
}

// rhythm ends all calls, has others come and go in time with each other, and then more come
// at once on a busy machine: BBR reckons with what completed in a second and how long that
// took at least, which is just as many calls as there were in flight.
func (d *drawer) rhythm() {
	d.now += 3000 // whoever waits is released
	for _, id := range d.calls {
		d.planned = append(d.planned, func() *Op { return &Op{T: d.now, Kind: "exit", ID: id} })
	}
	d.calls = nil
	machine := func(load float64) {
		d.planned = append(d.planned, func() *Op { return &Op{T: d.now, Kind: "setSystem", Load: new(load), CPU: new(0.0)} })
	}
	comes := func() *Op {
		d.last++
		d.calls = append(d.calls, d.last)
		return &Op{T: d.now, Kind: "enter", ID: d.last, Resource: "steady", EntryType: "in"}
	}
	early := pick(d, int64(0), 1) // then they are a little more than there may be
	goes := func() *Op {
		op := &Op{T: d.now - early, Kind: "exit", ID: d.calls[0]}
		d.calls = d.calls[1:]
		return op
	}
	machine(0)
	apart, together := pick(d, int64(200), 250, 500), pick(d, int64(2), 3)
	for beat := range together + 2000/apart { // so a whole second has passed that was like the next
		d.planned = append(d.planned, func() *Op {
			op := comes()
			d.now += apart
			return op
		})
		if beat+1 >= together {
			d.planned = append(d.planned, goes)
		}
	}
	machine(3)
	d.planned = append(d.planned, comes, comes, comes)
}

// pass lets some time pass: none, a little, to the edge of a bucket, or long enough for
// everything to be idle.
func (d *drawer) pass() {
	width := d.trace.Config.IntervalMs / int64(d.trace.Config.SampleCount)
	switch n := d.IntN(100); {
	case n < 40:
	case n < 75:
		d.now += d.Int64N(30)
	case n < 90:
		d.now += d.Int64N(300)
	case n < 97:
		epoch := d.trace.Config.EpochMs
		d.now = floor(epoch+d.now, width) + width - epoch
	default:
		d.now += d.Int64N(4000)
	}
}

func (d *drawer) enter(op *Op) *Op {
	d.last++
	op.Kind, op.ID, op.Resource = "enter", d.last, d.resource()
	op.Prioritized = d.often(50)
	op.EntryType = pick(d, "in", "in", "out")
	if d.often(15) {
		op.Count = new(pick(d, int64(2), 3))
	}
	switch {
	case len(d.calls) > 0 && d.often(10):
		op.Parent = new(d.calls[len(d.calls)-1])
	case d.often(70):
		op.Context, op.Origin = pick(d, "web", "job"), pick(d, "", "appA", "appB", "appC")
	}
	for range d.IntN(3) {
		op.Args = append(op.Args, encode(pick[any](d, "x", "x", "y", 7, []any{"x", "y"})))
	}
	d.calls = append(d.calls, op.ID)
	return op
}

// exit ends some call, if it runs by then.
func (d *drawer) exit(op *Op) *Op {
	op.Kind, op.Error = "exit", d.often(40)
	if len(d.calls) > 0 {
		op.ID = pick(d, d.calls...)
	}
	if d.often(80) && len(d.calls) > 3 {
		op.ID = d.calls[0]
		d.calls = d.calls[1:]
	}
	return op
}

// change loads rules of which one has another limit, or another behavior.
func (d *drawer) change(op *Op) {
	op.Kind = "loadRules"
	r := &d.flow[d.IntN(len(d.flow))]
	switch {
	case d.often(50):
		r.Count = d.threshold()
	case d.often(50):
		r.MaxQueueingTimeMs = new(pick(d, int64(20), 500, 1000))
	default:
		r.WarmUpPeriodSec = new(pick(d, int64(1), 3, 8))
	}
	op.Rules = d.all()
}
