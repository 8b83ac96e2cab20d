package golden

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// difference is a figure that is not Java's.
type difference struct {
	*player
	ref       NodeRef
	field     string
	want, got float64
	from, to  int64 // the time that an average is over
	history   bool  // which shows whole milliseconds
}

// summed reports whether the node is the sum of others.
func (d *difference) summed() bool { return d.ref.Kind == "entrance" || d.ref.Kind == "root" }

// childrenSummed: Java sums only some figures of the children; the others are those
// of an empty node, and the average is weighted by what passed.
func childrenSummed(d *difference) bool {
	if !d.summed() {
		return false
	}
	if d.history {
		return d.want == 0
	}
	switch d.field {
	case "avgRt":
		avg, _ := d.weighted(d.ref)
		return near(d.want, avg) || d.book.some(d.ref, func(c *call) bool { return c.java.borrows() || c.oddCount })
	case "minRt":
		return d.want == float64(d.config.StatisticMaxRtMs)
	case "maxSuccessQps":
		return near(d.want, 1/toSeconds(d.book.width))
	}
	return d.want == 0 && slices.Contains(emptyInJava, d.field)
}

var emptyInJava = []string{
	"exceptionQps", "occupiedPassQps", "waiting", "previousPassQps", "previousBlockQps", "totalSuccess", "totalException",
}

// weighted is Java's average response time of a node, and what passed there: each
// child weighs as much as it passed.
func (d *difference) weighted(ref NodeRef) (avg float64, pass float64) {
	if ref.Kind == "call" {
		sum := d.sum(ref)
		return ms(sum.RT) / float64(max(1, sum.Complete)), float64(sum.Pass)
	}
	for _, child := range d.book.children(ref) {
		childAvg, childPass := d.weighted(child)
		avg += childAvg * childPass
		pass += childPass
	}
	return avg / max(1, pass), pass
}

// sum is what the book has for the time that the figure is about.
func (d *difference) sum(ref NodeRef) (sum tally) {
	d.book.events(ref, d.to, func(at int64, what stat.Counts) {
		if at >= d.from && at < d.to {
			sum.add(what)
		}
	})
	return sum
}

// averageOverCalls: Java divides the response times by units.
func averageOverCalls(d *difference) bool {
	sum := d.sum(d.ref)
	return d.field == "avgRt" && !d.summed() && sum.Complete != sum.Exited && near(d.want, d.java(sum))
}

// java is Java's average response time, in a history in whole milliseconds.
func (d *difference) java(sum tally) float64 {
	avg := ms(sum.RT) / float64(max(1, sum.Complete))
	if d.history {
		return math.Trunc(avg)
	}
	return avg
}

// fraction: Java's response times are differences of whole milliseconds. That is
// seen where a sleep moves the clock by a fraction, which also may be rounded.
func fraction(d *difference) bool {
	if d.config.Sleep != "advance" || d.field != "avgRt" && d.field != "minRt" {
		return false
	}
	most := 1.0 // ms, for each call
	for _, c := range d.book.calls {
		if c.exited && c.ended >= d.from && d.book.on(d.ref, c) {
			most = max(most, 1+2*ms(c.drift))
		}
	}
	sum := d.sum(d.ref)
	switch {
	case d.field == "minRt":
		return within(d.want, d.got, most)
	case d.history:
		most++
	}
	return within(d.want, d.java(sum), most)
}

// leastTime: to Java the least response time is at least 1 ms, and at most so many,
// also when nothing completed.
func leastTime(d *difference) bool {
	most := float64(d.config.StatisticMaxRtMs)
	java := most
	if !math.IsNaN(d.got) {
		java = min(max(1, math.Floor(d.got)), most)
	}
	return d.field == "minRt" && !d.summed() && d.want == java
}

// roundedClock: the clock has moved by a wait that differs.
func roundedClock(d *difference) bool {
	if d.field != "clock" || d.config.Sleep != "advance" {
		return false
	}
	for _, c := range slices.Backward(d.book.calls) {
		if c.wait > 0 {
			return math.Abs(d.want-d.got) <= float64(c.drift)
		}
	}
	return false
}

// countsDiffer: Java takes another count at exit, and counts below 1.
func countsDiffer(d *difference) bool {
	return d.field != "curThreadNum" && d.book.some(d.ref, (*call).odd)
}

// roundedRelease: a call that waits a little longer or shorter than in Java is
// released in another bucket or second, or after the figures are read.
func roundedRelease(d *difference) bool {
	if !slices.Contains(releaseFigures, d.field) {
		return false
	}
	var units int64
	for _, c := range d.book.calls {
		if c.aside == "" || c.blocked || !d.book.on(d.ref, c) {
			continue
		}
		ours, java := c.released, c.released-int64(c.wait-c.java.wait())
		if parted(ours, java, d.due) || floor(ours, d.book.width) != floor(java, d.book.width) ||
			floor(ours, int64(time.Second)) != floor(java, int64(time.Second)) {
			units += c.units
		}
	}
	most := float64(units)
	if d.field == "passQps" || d.field == "totalQps" {
		most /= d.config.interval().Seconds()
	}
	return within(d.want, d.got, most)
}

// parted reports whether now lies between two times.
func parted(a, b, now int64) bool { return (a <= now) != (b <= now) }

var releaseFigures = []string{
	"passQps", "totalQps", "curThreadNum", "previousPassQps", "totalPass", "totalRequest", "pass",
}

// borrowedFigure: Java books a borrower only on the node that the rule looks at, in
// the minute at once and in the window when it runs.
func borrowedFigure(d *difference) bool {
	if !slices.Contains(borrowedFigures, d.field) {
		return false
	}
	var units int64 // that may be booked elsewhere, or at another time
	for _, c := range d.book.calls {
		counted := d.book.on(d.ref, c) || d.lookedAt[d.ref]
		if c.java.borrows() && counted && c.runs() > d.to-int64(time.Minute+2*d.config.interval()) {
			units += c.units
		}
	}
	most := float64(units)
	if d.field == "passQps" || d.field == "totalQps" {
		most /= d.config.interval().Seconds()
	}
	return within(d.want, d.got, most)
}

var borrowedFigures = []string{
	"passQps", "totalQps", "waiting", "previousPassQps", "totalPass", "totalRequest", "pass", "occupiedPass",
}

// blockedLater: Java counts the refusal of such a call after its wait.
func blockedLater(d *difference) bool {
	return strings.Contains("blockQps totalQps previousBlockQps totalBlock totalRequest block", d.field) &&
		d.config.Sleep != "record" && d.book.some(d.ref, func(c *call) bool {
		return c.java.Result == "block" && c.java.WaitMs != nil
	})
}

// noBestBucket: Java takes it that at least one unit completed in some bucket.
func noBestBucket(d *difference) bool {
	return d.field == "maxSuccessQps" && d.got == 0 && near(d.want, 1/toSeconds(d.book.width))
}

// within reports whether two figures differ by at most so much.
func within(a, b, most float64) bool { return math.Abs(a-b) <= most || near(math.Abs(a-b), most) }

func toSeconds(ns int64) float64 { return time.Duration(ns).Seconds() }
