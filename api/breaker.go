package api

import (
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
)

// Ignore marks an error of guarded code as no failure; see [core.Ignore].
func Ignore(err error) error { return core.Ignore(err) }

// FailWhen says which errors of a resource of the default Guard are failures; see
// [Guard.FailWhen].
func FailWhen(resource string, failed func(error) bool) { Default().FailWhen(resource, failed) }

// FailWhen says which errors of the calls of one resource, of exactly that name, are failures, in
// place of Config.Failure: those for which failed is true. Any other error counts as a call that
// went well. A nil failed restores Config.Failure. It holds for errors that are reported from now
// on, whatever rules are loaded, and must be safe for concurrent use; see [core.Engine.FailWhen].
func (g *Guard) FailWhen(resource string, failed func(error) bool) {
	g.engine.FailWhen(resource, failed)
}

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
	return g.breakerTable().Status()
}

// OnBreaker calls f for every change of state of a breaker, until remove is called. The call that
// changes the breaker calls f, under no lock: f may make guarded calls, load rules and force
// breakers, and should be quick. See [breaker.Listeners].
func (g *Guard) OnBreaker(f func(breaker.Change)) (remove func()) {
	return g.breakerTable().Listeners().Add(f)
}

// OnBlocked calls f with the refusals of each second, soon after it is over, until remove is
// called or the Guard is closed: for an audit log, say. One Refusal is of one rule, resource, caller
// and refused value, with the number of calls. No call waits for f; f may make guarded calls, and
// must not close the Guard. See [core.Engine.OnBlocked].
func (g *Guard) OnBlocked(f func(Refusal)) (remove func()) { return g.engine.OnBlocked(f) }

// ForceBreaker makes the breaker of a rule on a resource, or with an empty resource all breakers
// of the rule, refuse or admit every call, until it is forced otherwise or released by
// [breaker.NotForced]. Loading rules doesn't end it, unless the rule is gone.
func (g *Guard) ForceBreaker(rule, resource string, f breaker.Force) error {
	return g.breakerTable().Force(rule, resource, f)
}

func (g *Guard) breakerTable() *breaker.Table {
	return g.engine.Rules().Family(core.KindBreaker).(*breaker.Table) // there from the start, see New
}
