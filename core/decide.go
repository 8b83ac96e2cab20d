package core

// decide prepares the call, asks every rule, lets every rule take, and records the
// admission if the call needn't wait. A slot that panics is passed over: what it would
// have said is lost, the others still decide. A call that would have to wait and can't
// takes nothing.
func (inv *Invocation) decide() (v Verdict) {
	able := false
	takes := len(inv.engine.chain.preparers) + len(inv.bound.judges)
	for step := 0; step >= 0; {
		if step = inv.decideFrom(step, &v, able); step == takes && !able {
			if able = inv.able(&v); !able {
				return v
			}
		}
	}
	return v
}

// able reports whether a call that was asked could wait for as long as the rules would
// have it, and if not, makes the verdict a refusal. Where the context panics, or ends
// the goroutine, the call is refused.
func (inv *Invocation) able(v *Verdict) (ok bool) {
	if v.Wait == 0 {
		return true
	}
	by, over := inv.named(v.By), false
	defer func() {
		if !over {
			_ = inv.refuse(by, nil)
		}
	}()
	if ok = inv.inTime(v.Wait); ok {
		*v = Verdict{}
	} else {
		*v = Verdict{Block: by}
	}
	over = true
	return ok
}

// named makes sure that a call which can't wait is refused in some name.
func (inv *Invocation) named(by *BlockError) *BlockError {
	if by == nil {
		by = NewBlockError(KindNone, inv.resource.Name(), "", nil)
	}
	return by
}

// decideFrom runs the steps from number i on: every preparer, then every checker's
// Ask, then every checker's Take, then what records the admission. It returns the number
// to go on with after a panic, or before the takes if the call would have to wait and is
// not known to be able to; or -1.
func (inv *Invocation) decideFrom(i int, v *Verdict, able bool) (next int) {
	preparers, judges := inv.engine.chain.preparers, inv.bound.judges
	prepared := len(preparers)
	asked := prepared + len(judges)
	taken := asked + len(judges)
	defer func() {
		if next == 0 {
			next = inv.interrupted(recover(), i, func() { inv.undecided(i - taken) })
		}
	}()
	for ; i < prepared; i++ {
		preparers[i].Prepare(inv)
	}
	for ; i < asked; i++ {
		if v.add(judges[i-prepared].Ask(inv)); v.Block != nil {
			return -1
		}
	}
	if v.Wait > 0 && !able {
		return asked
	}
	for ; i < taken; i++ {
		if v.add(judges[i-asked].Take(inv)); v.Block != nil {
			return -1
		}
		inv.waits = v.Wait > 0 || inv.Awaits()
	}
	if v.Wait > 0 || inv.Awaits() {
		return -1
	}
	for passed := inv.engine.chain.passed; i-taken < len(passed); i++ {
		passed[i-taken].Passed(inv)
	}
	return -1
}

// interrupted returns the number to go on with when step number i did not return. One that
// panicked, for that reason, is passed over. One that ended the goroutine ended the call
// with it, which end sees to.
func (inv *Invocation) interrupted(reason any, i int, end func()) (next int) {
	if reason == nil {
		end()
		return -1
	}
	inv.engine.failed(reason, inv.now)
	return i + 1
}

// undecided ends a call whose goroutine ends while it is decided about: while recorder
// number i records its admission, or before if i is negative.
func (inv *Invocation) undecided(i int) {
	if i < 0 {
		inv.giveBack()
	} else {
		inv.abandon(i + 1)
	}
}

// add keeps the first refusal, and of the waits the longest.
func (v *Verdict) add(next Verdict) {
	if next.Block != nil || next.Wait > v.Wait {
		*v = next
	}
}
