package replay

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
)

// judgeJava asks one rule after the other and charges at once, for each element of a list
// separately.
func (m *hotMoment) judgeJava(c *call, now int64) (verdict hotVerdict) {
	for i := range m.looks {
		l := &m.looks[i]
		values := l.values
		if l.other {
			values = nil
			if l.index < len(c.args) {
				values, _ = elements(c.args[l.index])
			}
		}
		for _, v := range values {
			m.asleep = m.asleep || verdict.wait > 0
			wait, ok := l.javaFits(l.value(v), v, now)
			if !ok {
				verdict.rule = l.ID // after it has made the call wait
				return verdict
			}
			if wait > 0 {
				verdict.wait += wait
				m.javaWaits++
			}
		}
	}
	return verdict
}

// enterJava counts a call that Java admitted, as Java does.
func (m *hotMoment) enterJava(c *call) {
	for _, l := range m.looks {
		if l.Metric != hotspot.Concurrency {
			continue
		}
		for _, v := range l.values {
			x := l.value(v)
			x.javaCalls++
			c.atExit = append(c.atExit, func() { x.javaCalls = max(0, x.javaCalls-1) })
		}
	}
}

func (l *hotLook) javaFits(x *hotValue, v argument.Value, now int64) (wait time.Duration, ok bool) {
	threshold := l.threshold(v)
	full := threshold + int64(l.Burst)
	seen := x.javaSeen
	switch {
	case l.Metric == hotspot.Concurrency:
		return 0, x.javaCalls+1 <= threshold
	case threshold == 0:
		return 0, false
	case l.Behavior == hotspot.Throttle:
		x.javaSeen = true
		if !seen {
			x.javaLast = now
			return 0, true
		}
		cost := int64(math.Round(1000 * float64(l.units*l.java.seconds()) / float64(threshold)))
		expected := x.javaLast + cost
		switch {
		case expected <= now:
			x.javaLast = now
			return 0, true
		case expected-now < l.java.MaxQueueingTimeMs:
			x.javaLast = expected
			return time.Duration(expected-now) * time.Millisecond, true
		}
		return 0, false
	case l.units > full:
		return 0, false
	case !seen:
		x.javaSeen, x.javaFilled, x.javaLeft = true, now, full-l.units
		return 0, true
	}
	elapsed, duration := now-x.javaFilled, l.java.seconds()*1000
	if elapsed <= duration {
		if x.javaLeft < l.units {
			return 0, false
		}
		x.javaLeft -= l.units
		return 0, true
	}
	left := min(full, x.javaLeft+elapsed*threshold/duration) - l.units
	if left < 0 {
		return 0, false
	}
	x.javaFilled, x.javaLeft = now, left
	return 0, true
}

// mark records on the values of a call that Java refused that Java has charged it all the same.
func (m *hotMoment) mark() {
	for _, l := range m.looks {
		for _, v := range l.values {
			x := l.value(v)
			x.listed = x.listed || l.list
			x.charged = x.charged || l.ID != m.java.rule
		}
	}
}
