package api

import (
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
)

// Breakers lists what the breakers of the default Guard do; see [Guard.Breakers].
func Breakers() []breaker.Status { return Default().Breakers() }

// OnBreaker calls f for every change of state of a breaker of the default Guard; see
// [Guard.OnBreaker].
func OnBreaker(f func(breaker.Change)) (remove func()) { return Default().OnBreaker(f) }

// ForceBreaker makes a breaker of the default Guard refuse or admit every call; see
// [Guard.ForceBreaker].
func ForceBreaker(rule, resource string, f breaker.Force) error {
	return Default().ForceBreaker(rule, resource, f)
}

// Breakers lists what every breaker does at the moment, in the order of the rules, then
// by resource.
func (g *Guard) Breakers() []breaker.Status {
	return g.breakers().Status()
}

// OnBreaker calls f for every change of state of a breaker, until remove is called. The call that
// changes the breaker calls f, under no lock: f may make guarded calls, load rules and force
// breakers, add and remove listeners, and should be quick. A panic in one is counted and logged like
// that of a slot, and the others are still called. remove waits for no call of f that is still running.
func (g *Guard) OnBreaker(f func(breaker.Change)) (remove func()) {
	return g.breakers().Listen(f)
}

// OnBlocked calls f with the refusals of each second, soon after it is over, until remove is
// called or the Guard is closed: for an audit log, say. One Refusal is of one rule, resource, refused
// value, caller and context, with the number of calls. No call waits for f; a timer of the Guard calls
// it, and [Guard.Close] with what is left. So f may take its time and may make guarded calls, but must
// not call Close. A panic of f counts in [Guard.Failures].
//
// At most 8,192 different refusals a second are reported one by one. Those beyond, and a few at the same
// instant, are one Refusal whose Block is of [KindNone] and has the resource node.OverflowName. A chain
// must have the slot log of package slots. While somebody listens, a refusal costs about as much
// as two look-ups in a map.
func (g *Guard) OnBlocked(f func(Refusal)) (remove func()) { return g.engine.OnBlocked(f) }

// ForceBreaker makes the breaker of a rule on a resource, or with an empty resource all breakers
// of the rule, refuse or admit every call, until it is forced otherwise or released by
// [breaker.NotForced]. Loading rules doesn't end it, unless the rule is gone.
func (g *Guard) ForceBreaker(rule, resource string, f breaker.Force) error {
	return g.breakers().Force(rule, resource, f)
}

// breakers are the breaker rules in force.
type breakers interface {
	Status() []breaker.Status
	Listen(f func(breaker.Change)) (remove func())
	Force(rule, resource string, f breaker.Force) error
}

func (g *Guard) breakers() breakers {
	return g.engine.Rules().Family(core.KindBreaker).(breakers) // there from the start, see New
}
