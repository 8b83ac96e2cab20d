package api

import (
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
)

// Breakers lists the states of the breakers of the default Guard; see [Guard.Breakers].
func Breakers() []breaker.Status { return Default().Breakers() }

// OnBreaker calls f whenever a breaker of the default Guard changes its state; see
// [Guard.OnBreaker].
func OnBreaker(f func(breaker.Change)) (remove func()) { return Default().OnBreaker(f) }

// ForceBreaker makes a breaker of the default Guard refuse or admit every call; see
// [Guard.ForceBreaker].
func ForceBreaker(rule, resource string, f breaker.Force) error {
	return Default().ForceBreaker(rule, resource, f)
}

// Breakers lists the state of every breaker, in the order of the rules, then by resource.
func (g *Guard) Breakers() []breaker.Status {
	return g.breakers().Status()
}

// OnBreaker calls f whenever a breaker changes its state, until remove is called. The call that
// changes the breaker calls f, without holding locks: f may make guarded calls, load rules and force
// breakers, add and remove listeners, and should be fast. A panic in one listener is counted and
// logged like a panic in a slot, and the others are still called. remove doesn't wait for a running
// call of f.
func (g *Guard) OnBreaker(f func(breaker.Change)) (remove func()) {
	return g.breakers().Listen(f)
}

// OnBlocked calls f with the refusals of each second, soon after it ends, until remove is called or
// the Guard is closed; for example for an audit log. A Refusal covers one rule, resource, refused
// value, caller and context, with the number of calls. No call waits for f; a timer of the Guard
// calls it, and [Guard.Close] with the remaining refusals. So f may take its time and may make
// guarded calls, but must not call Close. A panic of f counts in [Guard.Failures].
//
// At most 8,192 different refusals per second are reported individually. Further ones, and a few at
// the same instant, share one Refusal whose Block has kind [KindNone] and the resource
// node.OverflowName. The chain must include the log slot from package slots. With a listener, a
// refusal costs about two more map look-ups.
func (g *Guard) OnBlocked(f func(Refusal)) (remove func()) { return g.engine.OnBlocked(f) }

// OnNotice calls f when the use of a limit reaches a share in the field notify of its rule, until remove
// is called or the Guard is closed; for example for a webhook. For each rule, resource or value, and
// share, there is at most one notice in an interval of the rule, or in a quota's period. Calls for which another rule has no room
// don't count. No call waits for f: a timer of the Guard calls it within a tenth of a second, with the
// notices in order, and [Guard.Close] with the remaining ones. So f may take its time and may make
// guarded calls, but must not call Close. A panic of f counts in [Guard.Failures]. Up to 1,024 notices
// wait for f; the next one says how many found no place (Missed).
func (g *Guard) OnNotice(f func(Notice)) (remove func()) { return g.engine.OnNotice(f) }

// ForceBreaker makes a rule's breaker on a resource, or with an empty resource all its breakers,
// refuse or admit every call, until it is forced otherwise or released by [breaker.NotForced].
// Loading rules doesn't release it, unless the rule is gone.
func (g *Guard) ForceBreaker(rule, resource string, f breaker.Force) error {
	return g.breakers().Force(rule, resource, f)
}

// breakers is the interface of the breaker rules in force.
type breakers interface {
	Status() []breaker.Status
	Listen(f func(breaker.Change)) (remove func())
	Force(rule, resource string, f breaker.Force) error
}

func (g *Guard) breakers() breakers {
	return g.engine.Rules().Family(core.KindBreaker).(breakers) // always there; see New
}
