package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Stats holds the counts of one node at one time. Each counter is exact, but they are read one after
// another: under traffic, Lifetime may include a call that Second doesn't.
//
// The fields are raw counts; rates and response times are derived from them. So sums need no special
// rules: counts add up, and an average response time covers the calls of all children.
type Stats struct {
	// Interval is the length of the second window: one second, unless configured otherwise. Buckets
	// are its buckets, oldest first, including empty ones; Second is their sum.
	Interval time.Duration
	Buckets  []stat.Bucket[stat.Counts]
	Second   stat.Counts

	// History is the last 60 seconds of the clock, including the current one, oldest first, without
	// empty ones. Minute is their sum, and LastSecond the latest complete one.
	History    []stat.Bucket[stat.Counts]
	Minute     stat.Counts
	LastSecond stat.Counts

	// Lifetime is all counts since the node was made.
	Lifetime stat.Counts

	// InFlight is the number of calls that entered and have not exited.
	InFlight int64
	// Waiting is the number of units that prioritized calls borrowed from upcoming buckets, plus
	// the units of calls in the queue of an isolation rule. It is 0 on nodes without such a rule.
	Waiting int64
}

// Rates returns the counts of the second window per second, extrapolated if Interval is not a
// second.
func (f *Stats) Rates() stat.Rates {
	if f.Interval <= 0 {
		return stat.Rates{}
	}
	return f.Second.Per(f.Interval)
}

// TotalRate returns the units requested per second in the second window, admitted or refused.
func (f *Stats) TotalRate() float64 {
	r := f.Rates()
	return r.Pass + r.Block
}

// AvgRT returns the mean response time of the calls completed in the second window, or 0 if there were
// none.
func (f *Stats) AvgRT() time.Duration { return f.Second.AvgRT() }

// MinRT returns the shortest response time in the second window, or false if no call completed.
func (f *Stats) MinRT() (time.Duration, bool) { return f.Second.MinRT() }

// MaxComplete returns the maximum number of units completed in one bucket of the second window. For a
// node that sums its children, the bucket counts all of them together.
func (f *Stats) MaxComplete() int64 {
	var most int64
	for i := range f.Buckets {
		most = max(most, f.Buckets[i].Value.Complete)
	}
	return most
}

// MaxCompleteRate returns [Stats.MaxComplete] per second, extrapolated: the rate if every bucket had
// as many. Sentinel calls it maxSuccessQps.
func (f *Stats) MaxCompleteRate() float64 {
	if f.Interval <= 0 {
		return 0
	}
	return float64(f.MaxComplete()) * float64(len(f.Buckets)) / f.Interval.Seconds()
}

// read copies the counts of a node at now, reusing the slices.
func (f *Stats) read(n *node.StatisticNode, now int64, interval time.Duration) {
	*f = Stats{
		Interval: interval,
		Buckets:  n.AppendSecondBuckets(f.Buckets[:0], now),
		History:  n.AppendHistory(f.History[:0], now),
		Lifetime: n.Totals(),
		InFlight: n.InFlight(),
		Waiting:  n.Waiting(now),
	}
	for i := range f.Buckets {
		f.Second.Add(&f.Buckets[i].Value)
	}
	for i := range f.History {
		second := &f.History[i]
		f.Minute.Add(&second.Value)
		if age := time.Duration(now - second.Start); age >= time.Second && age < 2*time.Second {
			f.LastSecond = second.Value
		}
	}
}

// add adds the counts of a node that was read at the same time.
func (f *Stats) add(more *Stats) {
	f.Buckets = addByStart(f.Buckets, more.Buckets)
	f.Second.Add(&more.Second)
	f.History = addByStart(f.History, more.History)
	f.Minute.Add(&more.Minute)
	f.LastSecond.Add(&more.LastSecond)
	f.Lifetime.Add(&more.Lifetime)
	f.InFlight += more.InFlight
	f.Waiting += more.Waiting
}

// addByStart adds each bucket to the one with the same start. Both lists are sorted.
func addByStart(to, more []stat.Bucket[stat.Counts]) []stat.Bucket[stat.Counts] {
	for i := range more {
		start := more[i].Start
		at, found := slices.BinarySearchFunc(to, start, func(b stat.Bucket[stat.Counts], start int64) int {
			return cmp.Compare(b.Start, start)
		})
		if !found {
			to = slices.Insert(to, at, stat.Bucket[stat.Counts]{Start: start})
		}
		to[at].Value.Add(&more[i].Value)
	}
	return to
}
