package meter

// Refunds lets a [TokenBucket] take back what its calls didn't use, exactly or slightly less: as if
// they had taken the smaller number in the first place. Its owner passes it every take. The zero
// value belongs to a bucket from which no call has taken.
//
// A refund of x moves tat back by x, but not beyond the point at which the bucket would have been
// full when a later call took: from there on, the units would have been lost. So it is bounded by
// the least that was missing right before any later take. These minima are kept as a stack in the
// order of the takes, each lower than those after it, because a minimum that is followed by a lower
// one bounds nothing that the lower one doesn't bound. The first one after a take is its bound.
//
// When the stack is full, the two entries that differ least become one with the lower bound: later
// refunds may be smaller than they could be, but never larger.
//
// A refund also lowers what was missing before the later takes. Entries before them that are then
// no lower than the next one are dropped, so the order holds.
type Refunds struct {
	kept  [8]least
	n     int
	takes int64
}

// least is the time that was missing before a take: a bound on the refunds of all earlier takes.
type least struct {
	take    int64
	missing Moment
}

// Taken records a take before which that much was missing, and returns its number.
func (f *Refunds) Taken(missing Moment) (take int64) {
	for f.n > 0 && !f.kept[f.n-1].missing.before(missing) {
		f.n--
	}
	if f.n == len(f.kept) {
		f.join()
	}
	f.takes++
	f.kept[f.n] = least{f.takes, missing}
	f.n++
	return f.takes
}

// join makes one entry of the two neighbors that differ least. It bounds the takes that either did.
func (f *Refunds) join() {
	at, closest := 0, Moment{}
	for i := range f.n - 1 {
		if d := f.kept[i+1].missing.minus(f.kept[i].missing); i == 0 || d.before(closest) {
			at, closest = i, d
		}
	}
	f.kept[at].take = f.kept[at+1].take
	copy(f.kept[at+1:f.n-1], f.kept[at+2:f.n])
	f.n--
}

// back returns how much of a refund to the call of that take counts, and records it.
func (f *Refunds) back(take int64, x Moment) Moment {
	first := 0
	for first < f.n && f.kept[first].take <= take {
		first++
	}
	if first == f.n {
		return x // no other call has taken since
	}
	if f.kept[first].missing.before(x) {
		x = f.kept[first].missing
	}
	for i := first; i < f.n; i++ {
		f.kept[i].missing = f.kept[i].missing.minus(x)
	}
	stays := first
	for stays > 0 && !f.kept[stays-1].missing.before(f.kept[first].missing) {
		stays--
	}
	f.n = stays + copy(f.kept[stays:], f.kept[first:f.n])
	return x
}

// rescale follows a change of the cost of a unit: the number of missing units stays, rounded down.
func (f *Refunds) rescale(from, to Moment) {
	n := 0
	for i := range f.n {
		m := f.kept[i].missing.big()
		m.Mul(m, to.big()).Quo(m, from.big())
		next := least{f.kept[i].take, momentOf(m)}
		if n > 0 && !f.kept[n-1].missing.before(next.missing) {
			n-- // rounded to the same
		}
		f.kept[n] = next
		n++
	}
	f.n = n
}

// TakeFor is Take for a bucket with refunds. It returns the number of the take.
func (b *TokenBucket) TakeFor(f *Refunds, now, n, size int64) (take int64, ok bool) {
	tat, ok := b.end(now, n, size)
	if !ok {
		return 0, false
	}
	return b.takeFor(f, max(now, b.seen), tat), true
}

func (b *TokenBucket) takeFor(f *Refunds, at int64, tat Moment) (take int64) {
	take = f.Taken(b.tat.orNow(at).minus(Moment{ns: at}))
	b.tat, b.seen = tat, at
	return take
}

// Refund gives back n units of the call of a take.
func (b *TokenBucket) Refund(f *Refunds, take, n int64) {
	b.tat = b.tat.minus(f.back(take, b.unit.TimesMany(n)))
}

// Charge takes n units regardless of how many are left, but none beyond most missing ones. It
// returns how many it took.
func (b *TokenBucket) Charge(f *Refunds, now, n, most int64) (taken int64) {
	at := max(now, b.seen)
	before := b.tat.orNow(at)
	if room := b.unit.TimesMany(most); !room.Endless() {
		if n = b.within(n, before, Moment{ns: at}.plus(room)); n == 0 {
			return 0
		}
	}
	tat := before.plus(b.unit.TimesMany(n))
	if latest := (Moment{ns: at}).plus(Moment{ns: maxCost}); latest.before(tat) {
		tat = latest
	}
	b.takeFor(f, at, tat)
	return n
}

// within returns how many of n units, taken when tat is before, leave it no later than limit.
func (b *TokenBucket) within(n int64, before, limit Moment) int64 {
	fits := func(n int64) bool { return !limit.before(before.plus(b.unit.TimesMany(n))) }
	if fits(n) {
		return n
	}
	some := int64(0)
	for over := n; over-some > 1; {
		if half := some + (over-some)/2; fits(half) {
			some = half
		} else {
			over = half
		}
	}
	return some
}

// SetUnitFor is SetUnit for a bucket with refunds.
func (b *TokenBucket) SetUnitFor(f *Refunds, now int64, cost Moment) {
	if from := b.unit; from != cost && from != (Moment{}) {
		f.rescale(from, cost)
	}
	b.SetUnit(now, cost)
}

// FollowFor is Follow for a bucket with refunds. The last unit of the other rule bounds them like a
// take: had earlier calls taken less, the bucket would still be full no earlier than one unit after it.
func (b *TokenBucket) FollowFor(f *Refunds, last Moment) {
	b.Follow(last)
	f.Taken(b.tat.minus(last.plus(b.unit)))
}
