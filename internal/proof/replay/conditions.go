package replay

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// The conditions of the table's rows, in its order: conditions on verdicts are here, conditions on
// figures in conditionsfigures.go.

func (c *call) odd() bool { return c.oddCount }

// countsBelowOne: in Java a call may take nothing.
func countsBelowOne(m *moment) bool {
	return m.call.oddCount || m.any(func(x applied) bool { return m.book.some(x.node, (*call).odd) })
}

// beyondCaps: Java neither checks nor counts names beyond its caps.
func beyondCaps(m *moment) bool {
	beyond := func(names []string, name string, cap int) bool {
		i := slices.Index(names, name)
		return len(names) >= cap && (i < 0 || i >= cap)
	}
	contexts := slices.DeleteFunc(slices.Clone(m.book.contexts), func(name string) bool { return name == defaultContext })
	return m.want.Result == "pass" &&
		(m.call.place.context != defaultContext && beyond(contexts, m.call.place.context, javaContexts) ||
			beyond(m.book.resources, m.call.place.resource, javaResources))
}

const (
	javaContexts  = 2000 // names, in addition to the default context
	javaResources = 6000
)

// refusedRule: Java keeps a rule that we reject.
func refusedRule(m *moment) bool {
	return slices.ContainsFunc(m.refused, func(r JavaFlowRule) bool {
		return r.ID == m.want.Rule || r.Resource == m.call.place.resource && r.queues() && m.want.Via == "queue"
	})
}

// declaredFirst: both refuse, but we by a rule for everybody that was declared before the one for
// some callers that Java asks first.
func declaredFirst(m *moment) bool {
	ours, java := m.index(m.got.rule), m.index(m.want.Rule)
	return m.got.result == "block" && m.want.Result == "block" && m.want.WaitMs == nil &&
		ours >= 0 && ours < java &&
		m.rules[ours].Origin == flow.OriginDefault && m.rules[java].Origin != flow.OriginDefault
}

// blocksUnseen: a threshold of 0 blocks, even before the other resource was seen.
func blocksUnseen(m *moment) bool {
	return m.any(func(x applied) bool {
		return x.ID == m.got.rule && x.Relation == flow.Associated && x.Threshold == 0 && !m.book.exists(x.node)
	})
}

// batchHoldsMore: a call of n units holds n of a concurrency limit, in Java one.
func batchHoldsMore(m *moment) bool {
	return m.any(func(x applied) bool {
		calls, units := m.book.inFlight(x.node, m.now())
		room := x.limit() - m.call.units
		return x.Metric == flow.Concurrency && !x.system && calls <= room != (units <= room)
	})
}

// perInterval: in Java a threshold is per second and compared with the rate, rounded down, plus the
// units.
func perInterval(m *moment) bool {
	seconds := m.config.interval().Seconds()
	return seconds != 1 && m.any(func(x applied) bool {
		if !x.windowed() {
			return false
		}
		java := math.Floor(float64(m.used(x))/seconds) + float64(m.call.units)
		ours := float64(m.used(x)+m.call.units) / seconds
		if x.warms() { // the limit is somewhere below the threshold
			return java != ours
		}
		return java <= x.perSecond() != (ours <= x.perSecond())
	})
}

// coldBelowOne: Java never lets a resource warm up whose cold rate is below one.
func coldBelowOne(m *moment) bool {
	return m.want.Result == "block" && m.any(func(x applied) bool {
		return x.warms() && x.perSecond() < float64(x.ColdFactor)
	})
}

// noTokens: Java has no rate (NaN) where there is no room for tokens.
func noTokens(m *moment) bool {
	return m.any(func(x applied) bool {
		return x.warms() && x.slow()
	})
}

// startedWarm: the first call fills the tokens; Java fills them by the time since 1970, and not at
// all if the warning mark is zero.
func startedWarm(m *moment) bool {
	return m.any(func(x applied) bool {
		first := m.now()
		if i := slices.IndexFunc(m.book.calls, func(c *call) bool { return m.book.on(x.node, c) }); i >= 0 {
			first = m.book.calls[i].asked
		}
		warning, full := x.tokens()
		gained := toSeconds(floor(first, int64(time.Second))) * x.perSecond()
		return x.warms() && warning < full && (warning == 0 || gained < full)
	})
}

// stateKept: a rule that the reload left unchanged keeps its queue and its warmth.
func stateKept(m *moment) bool {
	return m.any(func(x applied) bool { return (x.warms() || x.queues()) && m.carried[x.ID] })
}

// forgotten: in Java a borrowed pass counts only if something touches the bucket while it is
// current.
func forgotten(m *moment) bool {
	return m.any(func(x applied) bool {
		return x.windowed() && m.book.some(x.node, func(c *call) bool {
			start := floor(c.runs(), x.width())
			return c.borrowed && start > m.now()-2*int64(x.Interval) && start+x.width() <= m.now() &&
				!m.book.touchedIn(x.node, start, start+x.width())
		})
	})
}

// roundedWait: the wait differs by Java's rounding.
func roundedWait(m *moment) bool {
	return m.got.result == "wait" && m.any(func(x applied) bool {
		drift := m.drift(x, m.call)
		return drift > 0 && (m.want.wait()-m.got.wait).Abs() <= drift
	})
}

// roundedFlip: the wait is so close to zero, or to the maximum, that Java's rounding decides. Or a
// wait that ended near the edge of a second did so in another second, which matters for warm-up.
func roundedFlip(m *moment) bool {
	turned := func(c *call) bool { return !c.blocked && parted(c.released, c.javaReleased, int64(time.Second)) }
	refused, refusedByJava := m.got.result == "block", m.want.Result == "block"
	return m.any(func(x applied) bool {
		drift := m.drift(x, m.call)
		switch {
		case x.warms() && m.book.some(x.node, turned):
			return true
		case drift == 0 || refused && refusedByJava:
			return false
		case refusedByJava:
			return m.got.wait >= x.MaxWait-drift
		case refused:
			return m.want.wait() >= x.MaxWait-drift
		}
		return (m.want.wait() - m.got.wait).Abs() <= drift
	})
}

// passedBy: in Java a borrower skips the rest of the chain. We also ask the later rules, and they
// count it.
func passedBy(m *moment) bool {
	if m.want.borrows() && m.after(m.borrowedBy()) {
		return true
	}
	return m.any(func(x applied) bool {
		skipped := m.line(x, m.call).skipped
		return skipped > 0 && (x.queues() || x.windowed() && skipped >= x.oldest(m.now()))
	})
}

// bookedElsewhere: Java books a borrower only on the node that it borrowed from, and in the second
// in which it asked, which matters for warm-up.
func bookedElsewhere(m *moment) bool {
	return m.any(func(x applied) bool {
		elsewhere := func(c *call) bool {
			return c.java.borrows() && (len(c.lenders) != 1 || c.lenders[0] != x.node)
		}
		return x.warms() && m.book.some(x.node, func(c *call) bool { return c.java.borrows() }) ||
			m.recently(x, elsewhere) || m.lookedAt[x.node]
	})
}

// overtaken: a prioritized call jumps ahead of waiting ones, but has no priority in Java's queues.
func overtaken(m *moment) bool { return m.model.Overtakes(m.call.m) }

// decidedTogether: Java asks one rule after the other, sleeps in between, and a queue keeps the
// room it gave to a call that a later rule refused.
func decidedTogether(m *moment) bool {
	queue := slices.IndexFunc(m.rules, func(x applied) bool { return x.queues() })
	breaker := m.want.BlockedBy == "degrade" || m.got.blockedBy == "degrade"
	byValue := m.hot.java.wait > 0 && (m.hot.java.rule != "" || len(m.rules) > 0) // before it asked these
	if strings.Contains(m.want.Via, "queue") && (byValue || m.after(queue) || breaker) {
		return true
	}
	return m.any(func(x applied) bool { return x.queues() && m.line(x, m.call).apart })
}

// waitedInVain: Java made a call wait and then refused it. Everything else is the same, unless the
// clock moved during the wait.
func waitedInVain(m *moment) bool {
	queued := m.hot.java.wait > 0
	for _, x := range m.rules {
		if m.want.BlockedBy == "param" || m.want.BlockedBy == "flow" && x.ID == m.want.Rule {
			break
		}
		queued = queued || x.queues()
	}
	return queued && m.config.Sleep != "advance" && m.want.WaitMs != nil && m.got.result == "block" && m.got.wait == 0 &&
		m.got.blockedBy == m.want.BlockedBy && m.got.rule == m.want.Rule
}

// waitedForEach: Java made a call wait for one rule after the other, which leaves every queue in
// our state as long as the clock stands still.
func waitedForEach(m *moment) bool {
	sum, waits := m.hot.java.wait, m.hot.javaWaits
	if m.call.m.Borrows() {
		return false
	}
	for _, x := range m.rules {
		if x.queues() && m.drift(x, m.call) > 0 {
			return false
		}
		if wait := m.model.WaitOf(m.call.m, x.ID); wait > 0 {
			sum, waits = sum+wait, waits+1
		}
	}
	return m.config.Sleep == "record" && m.got.result == "wait" && m.want.wait() == sum && waits > 1
}

// reservedEarly: a rule's units are taken at the decision, not after the wait.
func reservedEarly(m *moment) bool {
	return m.any(func(x applied) bool {
		switch {
		case x.Metric == flow.Concurrency:
			return m.book.some(x.node, func(c *call) bool { return !c.blocked && c.released > m.now() })
		case x.queues():
			return false
		}
		return m.recently(x, func(c *call) bool {
			return !c.blocked && (c.released > m.now() || parted(c.asked, c.released, x.width()))
		})
	})
}

// comingFull: units admitted now must also fit together with borrowed ones when their bucket
// begins. If they don't, we refuse the call, or it borrows.
func comingFull(m *moment) bool {
	return m.any(func(x applied) bool {
		refused := x.ID == m.got.rule
		borrows := m.lends(x) && m.got.result == "wait" && m.call.runs()%x.width() == 0 && !m.want.borrows()
		if !x.windowed() || x.warms() || !refused && !borrows {
			return false
		}
		u := m.units(x)
		return u.Now+m.call.units <= x.limit() && u.Most+m.call.units > x.limit()
	})
}
