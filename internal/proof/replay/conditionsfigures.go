package replay

import (
	"math"
	"slices"
	"strings"
	"time"
)

// difference is a figure that is not Java's.
type difference struct {
	*player
	ref       NodeRef
	field     string
	want, got float64
	history   bool  // it is about the second that starts at second
	second    int64 // and in whole milliseconds if it is a time
}

// summed reports whether the node is the sum of others.
func (d *difference) summed() bool { return d.ref.Kind == "entrance" || d.ref.Kind == "root" }

// within reports whether a number of units explains the difference, if the field is a count of
// units.
func (d *difference) within(units int64) bool {
	most := float64(units)
	switch {
	case d.field == "maxSuccessQps":
		most /= toSeconds(d.book.width)
	case strings.HasSuffix(d.field, "Qps") && !strings.HasPrefix(d.field, "previous"):
		most /= d.config.interval().Seconds()
	}
	return math.Abs(d.want-d.got) <= most || near(math.Abs(d.want-d.got), most)
}

// about returns the time span of the figure on Java's clock, if it is of the second window or of a
// history.
func (d *difference) about() (from, to int64) {
	if d.history {
		return d.second, d.second + int64(time.Second)
	}
	return floor(d.javaNow, d.book.width) + d.book.width - d.book.interval, d.javaNow + 1
}

// javaTimes returns Java's response times of a node: the number of calls and units, the sum and the
// least in whole milliseconds, and the units that passed.
func (d *difference) javaTimes(ref NodeRef) (calls, units int64, sum, least float64, passed int64) {
	from, to := d.about()
	least = math.MaxFloat64
	for _, c := range d.book.calls {
		if c.blocked || !d.book.on(ref, c) {
			continue
		}
		if c.javaReleased >= from && c.javaReleased < to {
			passed += c.units
		}
		if c.exited && c.javaEnded >= from && c.javaEnded < to {
			rt := math.Floor(ms(time.Duration(c.javaEnded-d.epoch))) - math.Floor(ms(time.Duration(c.javaAsked-d.epoch)))
			calls++
			units += c.units
			sum += rt
			least = min(least, rt)
		}
	}
	return calls, units, sum, least, passed
}

// javaAverage returns Java's average response time per unit of a node, and the passed units. For a
// sum of nodes, Java weights the average by the units that passed on each child.
func (d *difference) javaAverage(ref NodeRef) (avg, passed float64) {
	if ref.Kind != "entrance" && ref.Kind != "root" {
		_, units, sum, _, passed := d.javaTimes(ref)
		avg = sum / float64(max(1, units))
		if d.history {
			avg = math.Trunc(avg)
		}
		return avg, float64(passed)
	}
	for _, child := range d.book.children(ref) {
		avgOfChild, passedByChild := d.javaAverage(child)
		avg += avgOfChild * passedByChild
		passed += passedByChild
	}
	return avg / max(1, passed), passed
}

// childrenSummed: Java sums only some figures of the children; the others are as for an empty node,
// and the average is weighted by the passed units.
func childrenSummed(d *difference) bool {
	switch {
	case !d.summed():
		return false
	case d.history:
		return d.want == 0
	case d.field == "avgRt":
		avg, _ := d.javaAverage(d.ref)
		borrowed := func(c *call) bool { return c.java.borrows() } // and does not weigh
		return near(d.want, avg) || d.book.some(d.ref, borrowed)
	case d.field == "minRt":
		return d.want == float64(d.config.StatisticMaxRtMs)
	case d.field == "maxSuccessQps":
		return near(d.want, 1/toSeconds(d.book.width))
	}
	return d.want == 0 && slices.Contains(emptyInJava, d.field)
}

var emptyInJava = []string{
	"exceptionQps", "occupiedPassQps", "waiting", "previousPassQps", "previousBlockQps", "totalSuccess", "totalException",
}

// averageOverCalls: Java divides the response times by units.
func averageOverCalls(d *difference) bool {
	if d.field != "avgRt" || d.summed() {
		return false
	}
	calls, units, _, _, _ := d.javaTimes(d.ref)
	avg, _ := d.javaAverage(d.ref)
	return calls != units && near(d.want, avg)
}

// responseTime: in Java a response time is the difference of two whole milliseconds, and the least
// one is between 1 ms and a maximum, even if nothing completed.
func responseTime(d *difference) bool {
	most := float64(d.config.StatisticMaxRtMs)
	switch d.field {
	case "minRt":
		_, _, _, least, _ := d.javaTimes(d.ref)
		return !d.summed() && d.want == min(max(1, least), most)
	case "avgRt":
		avg, _ := d.javaAverage(d.ref)
		return d.config.Sleep == "advance" && near(d.want, avg)
	}
	return false
}

// noBestBucket: Java assumes that at least one unit completed in some bucket.
func noBestBucket(d *difference) bool {
	return d.field == "maxSuccessQps" && d.got == 0 && near(d.want, 1/toSeconds(d.book.width))
}

// countsDiffer: Java uses another count at exit, and counts below 1.
func countsDiffer(d *difference) bool {
	return d.field != "curThreadNum" && d.book.some(d.ref, (*call).odd)
}

// roundedTimes: a call that waits a little longer or shorter than in Java is released in another
// bucket or second, or after the figures are read; if a sleep moves the clock, everything after it
// happens a little earlier or later.
func roundedTimes(d *difference) bool {
	if d.field == "clock" {
		return d.config.Sleep == "advance" && d.got-d.want == float64(d.due-d.javaNow) && d.withinDrift()
	}
	if slices.Contains([]string{"waiting", "occupiedPass", "occupiedPassQps"}, d.field) {
		return false
	}
	shifted := func(ours, java int64) bool {
		return (ours <= d.due) != (java <= d.javaNow) ||
			parted(ours, java, d.book.width) || parted(ours, java, int64(time.Second))
	}
	var units int64
	for _, c := range d.book.calls {
		if d.book.on(d.ref, c) && (shifted(c.released, c.javaReleased) || c.exited && shifted(c.ended, c.javaEnded)) {
			units += c.units
		}
	}
	if units > 0 && (d.field == "avgRt" || d.field == "minRt") {
		return true
	}
	return d.within(units)
}

// parted reports whether two times lie in different buckets of a width.
func parted(a, b, width int64) bool { return floor(a, width) != floor(b, width) }

// withinDrift reports whether the waits since the clock last agreed with Java's can have moved it
// that far.
func (d *difference) withinDrift() bool {
	var most time.Duration
	for _, c := range slices.Backward(d.book.calls) {
		most += c.drift
		if c.asked == c.javaAsked && c.wait > 0 {
			break
		}
	}
	return math.Abs(d.want-d.got) <= float64(most)
}

// borrowedFigure: Java books a borrower only on the node that the rule looks at, in the minute at
// once and in the window when it runs.
func borrowedFigure(d *difference) bool {
	if !slices.Contains(borrowedFigures, d.field) {
		return false
	}
	var units int64 // that may be booked elsewhere, or at another time
	for _, c := range d.book.calls {
		counted := d.book.on(d.ref, c) || d.lookedAt[d.ref]
		if c.java.borrows() && counted && c.runs() > d.due-int64(2*time.Minute) {
			units += c.units
		}
	}
	return d.within(units)
}

var borrowedFigures = []string{
	"passQps", "totalQps", "waiting", "previousPassQps", "totalPass", "totalRequest", "pass", "occupiedPass",
}

// blockedLater: if Java makes a call wait and then refuses it, it counts the refusal after the wait.
func blockedLater(d *difference) bool {
	return slices.Contains(blockFigures, d.field) && d.config.Sleep != "record" &&
		d.book.some(d.ref, func(c *call) bool { return c.java.Result == "block" && c.java.WaitMs != nil })
}

var blockFigures = []string{"blockQps", "totalQps", "previousBlockQps", "totalBlock", "totalRequest", "block"}

func toSeconds(ns int64) float64 { return time.Duration(ns).Seconds() }
