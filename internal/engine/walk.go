package engine

import (
	"time"
)

// stage is a part of a call's way through the chain, or its progress.
type stage uint8

const (
	_ stage = iota // no stage: a step did not return
	preparing
	asking     // every checker looks; see direct
	taking     // every checker decides
	shadowing  // rules in shadow mode decide on calls that were not rejected
	wanting    // find the wants of the call; see fetch.go
	rechecking // recheckers are asked again after a wait
	admitting  // the recorders record that the call was admitted
	returning  // reservations are given back
	refusing   // the recorders record that it was rejected
	completing // the clock is read, then the recorders record that the call has ended
	telling    // then the completers are notified, starting with the rule set's

	stops // from here on, the stages at which walk stops

	mayWait   // asked: the call would have to wait and it isn't known whether it can, or it has wants
	mustFetch // its wants are known
	waits     // taken: it has to wait
	admitted
	refused
	completed
)

// walk takes the call through the chain from the beginning of a stage to a stage at which it stops.
// v is the verdict so far. A slot that panics is skipped: its verdict or record is lost, but all
// others are still called.
func (inv *Invocation) walk(s stage, v *Verdict) stage {
	inv.stage, inv.step = s, 0
	return inv.resume(v)
}

// resume continues walk from the current stage.
func (inv *Invocation) resume(v *Verdict) stage {
	s := inv.steps(v)
	for s < stops {
		s = inv.steps(v)
	}
	if s >= admitted && inv.resource.AnyLeft(inv.nodes[:inv.nodeLen]) {
		inv.engine.restore(inv) // nodes that left while the call was counted on them
	}
	return s
}

// steps runs one step after another. The call records its progress, so that it can continue after a
// step that panicked: then steps returns that stage, otherwise the stage at which the call stops.
func (inv *Invocation) steps(v *Verdict) (at stage) {
	defer func() {
		if at != 0 {
			return
		}
		if reason := recover(); reason != nil {
			at = inv.interrupted(reason)
		}
	}()
	chain, bound := inv.engine.chain, inv.bound

	if inv.stage == preparing {
		for i := inv.step; i < len(chain.preparers); i++ {
			inv.step = i
			chain.preparers[i].Prepare(inv)
		}
		if inv.stage, inv.step = asking, 0; inv.direct() {
			inv.stage = taking
		}
	}
	if inv.stage == asking {
		for i := inv.step; i < len(bound.checkers); i++ {
			inv.step = i
			got := bound.checkers[i].Ask(inv)
			if got.Block != nil {
				if got.Block != needsMore {
					v.Block = got.Block
					break
				}
				got = Verdict{Wait: untilFetched}
			}
			v.longest(got)
		}
		switch {
		case v.Block != nil:
			inv.askFirst()
			inv.stage = returning
		case v.Wait > 0:
			return mayWait
		default:
			inv.stage, inv.step = taking, 0
		}
	}
	if inv.stage == taking {
		for i := inv.step; i < len(bound.checkers); i++ {
			inv.step = i
			got := bound.checkers[i].Take(inv)
			if got.Block != nil {
				v.Block = got.Block
				break
			}
			if got.Wait > 0 {
				v.longest(got)
				if !inv.queues {
					inv.WaitAtLeast(got.Wait)
				}
				inv.queues = false
				inv.waits = true
			}
		}
		switch {
		case v.Block != nil:
			inv.askFirst()
			inv.stage = returning
		case len(bound.shadows) > 0:
			inv.stage, inv.step = shadowing, 0
		case inv.waits:
			return waits
		default:
			inv.stage, inv.step = admitting, 0
		}
	}
	if inv.stage < admitting { // so that most calls make one comparison
		if inv.stage == shadowing {
			if inv.shadow(); inv.waits {
				return waits
			}
		} else if inv.stage == wanting {
			inv.findWants()
			return mustFetch
		} else { // rechecking
			for i := inv.step; i < len(bound.recheckers); i++ {
				inv.step = i
				if got := bound.recheckers[i].Recheck(inv); got.Block != nil {
					*v = got
					break
				}
			}
		}
		if inv.stage, inv.step = admitting, 0; v.Block != nil {
			inv.stage = returning
		}
	}
	switch inv.stage {
	case admitting:
		if len(inv.turns) > 0 {
			inv.runTurns()
		}
		for i := inv.step; i < len(chain.passed); i++ {
			inv.step = i
			chain.passed[i].Passed(inv)
		}
		return admitted
	case returning:
		inv.giveBack()
		inv.stage, inv.step = refusing, 0
		fallthrough
	case refusing:
		block := v.Block
		for i := inv.step; i < len(chain.blocked); i++ {
			inv.step = i
			chain.blocked[i].Blocked(inv, block)
		}
		return refused
	case completing:
		if inv.step == 0 { // a clock that panics leaves the time of admission
			inv.now = max(inv.now, inv.engine.Now())
			inv.step++
		}
		for i := inv.step; i <= len(chain.completed); i++ {
			inv.step = i
			chain.completed[i-1].Completed(inv)
		}
		inv.stage, inv.step = telling, 0
		fallthrough
	case telling:
		completers := inv.engine.rules.Load().completers
		for i := inv.step; i < len(completers)+len(inv.completions); i++ {
			if inv.step = i; i < len(completers) {
				completers[i].Complete(inv, 0)
			} else {
				c := &inv.completions[i-len(completers)]
				c.Completer.Complete(inv, c.Token)
			}
		}
	}
	return completed
}

// shadow lets the rules in shadow mode decide.
func (inv *Invocation) shadow() {
	for i, all := inv.step, inv.bound.shadows; i < len(all); i++ {
		inv.step = i
		all[i].Shadow(inv)
	}
}

// interrupted skips the step that panicked, with that reason, and returns the stage to continue in.
func (inv *Invocation) interrupted(reason any) stage {
	at, step := inv.stage, inv.step
	inv.step++
	inv.engine.failed(reason, inv.now, func() string { return inv.slotAt(at, step) })
	return at
}

// slotAt returns the name of the slot that a step belongs to, or "" if it belongs to none.
func (inv *Invocation) slotAt(at stage, step int) string {
	chain := inv.engine.chain
	var slot any
	switch at {
	case preparing:
		slot = chain.preparers[step]
	case asking, taking, shadowing, wanting, rechecking:
		return chain.checkingAt(inv.bound, at, step)
	case admitting:
		if step < len(chain.passed) {
			slot = chain.passed[step]
		}
	case refusing:
		slot = chain.blocked[step]
	case completing:
		if step > 0 { // otherwise it was the clock
			slot = chain.completed[step-1]
		}
	}
	if s, ok := slot.(Slot); ok {
		return s.Name()
	}
	return ""
}

// # When rules need not be asked
//
// Every checker is asked before any takes, so that a call that will be rejected takes nothing that
// others need in the meantime. If no call is rejected, asking is wasted. So if none of several
// checkers has rejected a call of the resource lately, and none makes calls wait, they take
// immediately, in order; and a call that is then rejected gives its units back, just like a call
// that was asked and then finds that another was quicker. From that call on, all checkers are asked
// first again, until none has rejected a call for a while. The decisions are the same, because
// asking commits to nothing. A single checker need not be asked. For prioritized calls, which may
// wait, checkers are asked.
//
// askPeriod is the time after a rejection during which all checkers are asked first.
const askPeriod = int64(time.Second)

// direct reports whether asking the checkers first would be wasted effort.
func (inv *Invocation) direct() bool {
	b := inv.bound
	return b.direct && !inv.prioritized && (!b.asksFirst || inv.now >= inv.resource.askUntil.Load())
}

// askFirst makes checkers of the resource be asked first for a while. It seldom writes, because all
// calls read the value.
func (inv *Invocation) askFirst() {
	if !inv.bound.asksFirst {
		return
	}
	askUntil := &inv.resource.askUntil
	if until := inv.now + askPeriod; askUntil.Load() < until-askPeriod/2 {
		askUntil.Store(until)
	}
}
