package core

import "time"

// Decider is what [Family.Bind] may return: rules that perhaps decide in one step what Ask
// and Take of their slot decide in two.
type Decider interface {
	// DecidesAtOnce reports whether Decide may be called in place of both.
	DecidesAtOnce() bool
	// Decide decides about a call that is not prioritized. It says what Ask and Take would,
	// one right after the other, and leaves on the invocation what Take would. A call that
	// it refuses has taken nothing of these rules, and none waits.
	Decide(*Invocation) *BlockError
}

// Relay is a [FamilyChecker] that does nothing but call what Bind returned.
type Relay interface {
	FamilyChecker
	// Decider is what may be called in its place, where Bind returned rules; nil if nothing
	// may. of is the slot in the chain: one that embeds the relay does more than that.
	Decider(of Checker, rules any) Decider
}

// # When nobody needs to be asked
//
// Every rule is asked before any takes, so that a call which will be refused takes
// nothing that others would miss meanwhile. Where nobody is refused that is in vain. So
// as long as none of several families has refused a call of the resource lately, they
// decide at once, in their order; and who is refused then gives back what it has taken,
// as one does that was asked and finds at last that another one was quicker. From that
// call on, all are asked first again, until none was refused for a while. What is
// decided is the same: to ask binds nobody. A family that is alone has nobody to ask for.
//
// wariness is how long after a refusal all are asked.
const wariness = int64(time.Second)

// deciders are the families that judge, if each of them decides at once; they need not be
// asked if ok.
func (c *Chain) deciders(rules *[kinds]any, judges []Checker) (list []Decider, ok bool) {
	for _, judge := range judges {
		relay, ok := judge.(Relay)
		if !ok {
			return nil, false
		}
		d := relay.Decider(judge, rules[relay.Kind()])
		if d == nil || !d.DecidesAtOnce() {
			return nil, false
		}
		list = append(list, d)
	}
	return list, true
}

// atOnce reports whether the call is decided about at once.
func (inv *Invocation) atOnce() bool {
	b := inv.bound
	return b.atOnce && !inv.prioritized && (len(b.deciders) < 2 || inv.now >= inv.resource.wary.Load())
}

// beWary has the calls of the resource asked first for a while. It writes seldom, for all
// calls read it.
func (inv *Invocation) beWary() {
	if b := inv.bound; !b.atOnce || len(b.deciders) < 2 {
		return
	}
	wary := &inv.resource.wary
	if until := inv.now + wariness; wary.Load() < until-wariness/2 {
		wary.Store(until)
	}
}

// decideAtOnce is decide for a call that nobody is asked about.
func (inv *Invocation) decideAtOnce() (block *BlockError) {
	for step := 0; step >= 0; {
		step = inv.decideAtOnceFrom(step, &block)
	}
	return block
}

// decideAtOnceFrom runs the steps from number i on: every preparer, every decider, then
// what records the admission or the refusal. It returns the number to go on with after a
// panic, or -1.
func (inv *Invocation) decideAtOnceFrom(i int, block **BlockError) (next int) {
	chain, deciders := inv.engine.chain, inv.bound.deciders
	prepared := len(chain.preparers)
	decided := prepared + len(deciders)
	defer func() {
		if next == 0 {
			next = inv.interrupted(recover(), i, func() {
				if i >= decided && *block != nil {
					inv.unrecorded(phaseBlocked, i-decided, *block)
				} else {
					inv.undecided(i - decided)
				}
			})
		}
	}()
	for ; i < prepared; i++ {
		chain.preparers[i].Prepare(inv)
	}
	for ; i < decided; i++ {
		if *block = deciders[i-prepared].Decide(inv); *block != nil {
			inv.beWary()
			inv.giveBack()
			i = decided
			break
		}
	}
	if *block != nil {
		for ; i-decided < len(chain.blocked); i++ {
			chain.blocked[i-decided].Blocked(inv, *block)
		}
		return -1
	}
	for ; i-decided < len(chain.passed); i++ {
		chain.passed[i-decided].Passed(inv)
	}
	return -1
}
