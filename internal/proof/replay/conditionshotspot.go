package replay

import (
	"math/big"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
)

// The conditions of the table's rows about hotspot rules. In all of them the difference is about a
// hotspot rule, and the two machines give Java's verdict and ours.

// hotspotDiffers reports whether f holds for a rule that made the difference and one of
// the values that it looks at.
func hotspotDiffers(f func(m *moment, l *hotLook, v argument.Value, x *hotValue) bool) func(*moment) bool {
	return func(m *moment) bool {
		for i := range m.hot.looks {
			l := &m.hot.looks[i]
			if byRule := m.hot.java.rule + m.hot.ours.rule; byRule != "" && l.ID != m.hot.java.rule && l.ID != m.hot.ours.rule {
				continue
			}
			if m.hot.java == m.hot.ours {
				continue
			}
			if slices.ContainsFunc(l.values, func(v argument.Value) bool { return f(m, l, v, l.value(v)) }) {
				return true
			}
		}
		return false
	}
}

var (
	// otherArgument: Java resolves a negative index once, at the first call.
	otherArgument = func(m *moment) bool {
		return m.hot.java != m.hot.ours && slices.ContainsFunc(m.hot.looks, func(l hotLook) bool { return l.other })
	}

	// forgottenByReload: in Java a changed rule is a new one.
	forgottenByReload = hotspotDiffers(func(_ *moment, _ *hotLook, _ argument.Value, x *hotValue) bool { return x.replaced })

	// batchOfValue: in Java a call of n units holds one of a value's limit.
	batchOfValue = hotspotDiffers(func(m *moment, l *hotLook, v argument.Value, x *hotValue) bool {
		held := m.model.HeldOf(m.call.m, l.ID, v)
		fits := held+l.units <= l.threshold(v)
		return l.Metric == hotspot.Concurrency && !x.replaced && (l.units > 1 || held != x.javaCalls) && fits != (x.javaCalls < l.threshold(v))
	})

	// longestWait: Java refuses a wait of exactly the maximum.
	longestWait = hotspotDiffers(func(m *moment, l *hotLook, _ argument.Value, _ *hotValue) bool {
		return l.Behavior == hotspot.Throttle && m.hot.java.rule == l.ID && m.hot.ours.rule == "" && m.hot.ours.wait == l.MaxWait
	})

	// listAtOnce: Java charges and checks the elements of a list one by one, keeps what
	// it charged before it refused, and waits for the sum.
	listAtOnce = hotspotDiffers(func(_ *moment, l *hotLook, _ argument.Value, x *hotValue) bool {
		return l.list && len(l.values) > 1 || x.listed
	})

	// chargedInVain: Java keeps the charges of one rule if another refused.
	chargedInVain = hotspotDiffers(func(_ *moment, _ *hotLook, _ argument.Value, x *hotValue) bool { return x.charged })

	// wholeMilliseconds: Java rounds the cost of a call.
	wholeMilliseconds = hotspotDiffers(func(m *moment, l *hotLook, v argument.Value, _ *hotValue) bool {
		return l.Behavior == hotspot.Throttle && l.roundsCost(v)
	})
)

// roundsCost reports whether the cost of a call of one unit is not a whole millisecond.
func (l *hotLook) roundsCost(v argument.Value) bool {
	threshold := l.threshold(v)
	return threshold > 0 && l.java.seconds()*1000%threshold != 0
}

// roundedTurn: both wait, and the two machines say how long; the difference is Java's rounding, or
// the nanosecond that we round down to.
func roundedTurn(m *moment) bool {
	return m.got.result == "wait" && slices.ContainsFunc(m.hot.looks, func(l hotLook) bool {
		return l.Behavior == hotspot.Throttle && slices.ContainsFunc(l.values, l.roundsCost)
	})
}

// summedWait: Java adds up the waits of a list, which leaves every queue in our state.
func summedWait(m *moment) bool {
	same := true
	for i := range m.hot.looks {
		l := &m.hot.looks[i]
		values := l.each()
		same = same && len(values) == len(l.values)
		for _, v := range values {
			x := l.value(v)
			turn := m.model.TurnOf(m.call.m, l.ID, v)
			same = same && l.Behavior == hotspot.Throttle && !l.roundsCost(v) && turn != nil &&
				turn.Cmp(new(big.Int).Lsh(big.NewInt(x.javaLast*int64(time.Millisecond)), 32)) == 0
		}
	}
	if m.got.result == "block" { // both refuse, but Java only after a wait
		return m.want.WaitMs != nil && m.got.wait == 0 && m.got.rule == m.want.Rule && listed(m)
	}
	return same && m.config.Sleep == "record" && listAtOnce(m)
}

func listed(m *moment) bool {
	return slices.ContainsFunc(m.hot.looks, func(l hotLook) bool { return l.ID == m.got.rule && l.list })
}
