package main

// familyRows break the families of rules: flow, hotspot, breaker, adaptive, outlier and system.
var familyRows = []row{
	{
		invariant:   "A threshold that is not a number is rejected.",
		declaration: "flow.Rule.checkNumbers",
		old:         `!(r.Threshold >= 0)`,
		new:         `r.Threshold < 0`,
		test:        "go test -run ^TestRuleRefuses$ ./flow",
	},
	{
		invariant:   "A warm-up bucket never holds less than zero tokens.",
		declaration: "flow.warmUp.settleLocked",
		old:         `w.stored = max(0, w.stored)`,
		test:        "go test -run ^TestWarmUpTokensStayInTheirBucket$ ./flow",
	},
	{
		invariant:   "A warm-up bucket that holds less than one token is not rounded to whole tokens.",
		declaration: "flow.newWarmUp",
		old:         `math.Floor(2*tokens/(1+factor)) > 0`,
		new:         `true`,
		test:        "go test -run ^TestWarmUpAtLowRates$ ./flow",
	},
	{
		invariant:   "A reload keeps the queue of a throttle whose rule changed.",
		declaration: "flow.controller.newEnforcer",
		old:         `if c.kept.queue == nil {`,
		new:         `if true {`,
		test:        "go test -run ^TestReload$ ./flow",
	},
	{
		invariant:   "A reload hands out no burst of a throttle twice.",
		declaration: "internal/meter.Pacer.SetBurst",
		old:         `unit != before &&`,
		new:         `unit == before &&`,
		test:        "go test -run ^TestThrottleWithABurstReloaded$ ./flow",
	},
	{
		invariant:   "The burst that a waiting call leaves behind is there for the calls behind it.",
		declaration: "internal/meter.Pacer.grant",
		old:         `notBefore-t.slack`,
		new:         `notBefore`,
		test:        "go test -run ^TestBurstBehindACallThatLeaves$ ./internal/meter",
	},
	{
		invariant:   "A call that waits hides no unused burst from a reload.",
		declaration: "internal/meter.Pacer.NotBefore",
		old:         `t.spent = t.spent.Later(m)`,
		test:        "go test -run ^TestBurstBehindAQueueReloaded$ ./flow",
	},
	{
		invariant:   "A burst that is set to 0 for a while is not handed out again.",
		declaration: "internal/meter.Pacer.SetBurst",
		old:         `case old == 0:`,
		new:         `case false:`,
		test:        "go test -run ^TestBurstBehindAQueueReloaded$ ./flow",
	},
	{
		invariant:   "A share has one notice in a period of a quota, also in another calendar.",
		declaration: "internal/family.Noticed.ReachedIn",
		old:         `period != latest`,
		new:         `true`,
		test:        "go test -run ^TestQuotaNotices$ ./flow",
	},
	{
		invariant:   "A reload does not refill a token bucket.",
		declaration: "flow.controller.newEnforcer",
		old:         `cmp.Or(c.kept.bucket, newBucket(*r))`,
		new:         `newBucket(*r)`,
		test:        "go test -run ^TestTokenBucketReloaded$ ./flow",
	},
	{
		invariant:   "A window that counts borrowers exists before the first of them is admitted.",
		declaration: "flow.checker.Take",
		old:         `longest.Borrowed || inv.Prioritized() && len(rs.sharing) > 0`,
		new:         `false && inv.Prioritized()`,
		test:        "go test -run ^TestBorrowersBeforeTheCallersOfAPath$ ./flow",
	},
	{
		invariant:   "A value over its limit or with calls in flight is not forgotten.",
		declaration: "hotspot.controller.forgettableLocked",
		old:         `case x.held > 0, x.lease != nil && x.lease.keepsLocked(now), x.extras != nil && x.extras.keepsLocked(c, now): return false; case c.rule.leases():`,
		new:         `case x != nil:`,
		test:        "go test -run ^TestCyclingValuesNeverRaisesALimit$ ./hotspot",
	},
	{
		invariant:   "A part of a key can't pass for two: its length comes before it.",
		declaration: "core/argument.Tuple.With",
		old:         `t = binary.AppendUvarint(t, uint64(len(v.text)))`,
		new:         `t = append(t, 0)`,
		test:        "go test -run ^TestTuplesCantBeForged$ ./core/argument",
	},
	{
		invariant:   "Keys without a cell share a token bucket that fills as slowly as the slowest of theirs.",
		declaration: "hotspot.controller.star",
		old:         `c.restQuota.unit = c.restQuota.unit.Later(q.unit)`,
		new:         `_ = c.restQuota`,
		test:        "go test -run ^TestKeysThatFindNoRoomGetNoMore$ ./hotspot",
	},
	{
		invariant:   "A value's tokens fill at the rate of its latest plan.",
		declaration: "hotspot.cell.planLocked",
		old:         `x.fillAsLocked(x.shard.rule.quotaOf(x.value, p), now)`,
		new:         `_ = now`,
		test:        "go test -run ^TestPlansAreExceptionsByPlan$ ./hotspot",
	},
	{
		invariant:   "A refusal during a lockout doesn't extend it.",
		declaration: "hotspot.controller.refusedLocked",
		old:         `now < l.until`,
		new:         `false`,
		test:        "go test -run ^TestLockoutsAreThoseOfTheTwin$ ./hotspot",
	},
	{
		invariant:   "At most half of the cells are locked out.",
		declaration: "hotspot.shard.locksLocked",
		old:         `max(1, s.room/2)`,
		new:         `1 << 30`,
		test:        "go test -run ^TestLockoutsAreBoundedAndEnd$ ./hotspot",
	},
	{
		invariant:   "A share has one notice in an interval.",
		declaration: "internal/family.Noticed.Reached",
		old:         `now+int64(n.Interval)`,
		new:         `now`,
		test:        "go test -run ^TestNoticesAreThoseOfTheTwin$ ./flow",
	},
	{
		invariant:   "A value that is evicted has no notice too many.",
		declaration: "hotspot.controller.forgettableLocked",
		old:         `x.extras != nil && x.extras.keepsLocked(c, now)`,
		new:         `false`,
		test:        "go test -run ^TestNoticesOfValuesWithoutRoom$ ./hotspot",
	},
	{
		invariant:   "One question at a time runs about a value.",
		declaration: "hotspot.controller.inquireLocked",
		old:         `s.asking[v] = true`,
		new:         `_ = v`,
		test:        "go test -tags sim -run ^TestSimLimitsFromCode$ ./hotspot",
	},
	{
		invariant:   "A limit from code that is off its range is an error.",
		declaration: "hotspot.controller.answer",
		old:         `err != nil`,
		new:         `false && err != nil`,
		test:        "go test -run ^TestLimitsFromCodeAreExceptionsByAnswer$ ./hotspot",
	},
	{
		invariant:   "A hot value shows and lends nothing once a question is due.",
		declaration: "hotspot.hotValue.storeUntil",
		old:         `min(until, x.extras.due-1)`,
		new:         `until`,
		test:        "go test -run ^TestAHotValueAsksInTime$ ./hotspot",
	},
	{
		invariant:   "No background function starts after Close.",
		declaration: "internal/engine.background.begin",
		old:         `b.closed ||`,
		new:         ``,
		test:        "go test -run ^TestBackgroundEndsWithClose$ ./internal/engine",
	},
	{
		invariant:   "The exception with the fewest stars decides.",
		declaration: "hotspot.controller.star",
		old:         `bits.OnesCount(named)-bits.OnesCount(s.named)`,
		new:         `bits.OnesCount(s.named)-bits.OnesCount(named)`,
		test:        "go test -run ^TestKeysGetWhatTheirTextsGet$ ./hotspot",
	},
	{
		invariant:   "A value's token bucket is forgotten only when it is full.",
		declaration: "hotspot.controller.forgettableLocked",
		old:         `return x.tokens == nil || x.tokens.Full(now)`,
		new:         `return true`,
		test:        "go test -run ^TestOnlyAFullBucketIsForgotten$ ./hotspot",
	},
	{
		invariant:   "A call is charged for its value where that is by then, not for others that share the rest.",
		declaration: "hotspot.shard.charge",
		old:         `x := s.obtainLocked(v, hash, now, q, c)`,
		new:         `x := &s.rest`,
		test:        "go test -run ^TestCostsOfTheRest$ ./hotspot",
	},
	{
		invariant:   "A value's token bucket takes back no more than a replay of its calls would hold.",
		declaration: "hotspot.cell.setUnitLocked",
		old:         `x.refunds != nil`,
		new:         `false`,
		test:        "go test -run ^TestCostsOfValuesAreTheirTwins$ ./hotspot",
	},
	{
		invariant:   "Permits that a call was granted in two places are given back in both.",
		declaration: "internal/engine.Reservation.joins",
		old:         `before.Holder == r.Holder && (r.UntilExit || before.Token == r.Token)`,
		new:         `r.UntilExit || before.Token == r.Token && before.Holder == r.Holder`,
		test:        "go test -run ^TestPermitsOfTheRest$ ./hotspot",
	},
	{
		invariant:   "A probe is returned if another rule refuses its call.",
		declaration: "breaker.controller.take",
		old:         `if got.probe`,
		new:         `if got.probe && false`,
		test:        "go test -run ^TestRefusedProbe$ ./breaker",
	},
	{
		invariant:   "A half-open breaker admits no more calls than it has probes.",
		declaration: "breaker.machine.shut",
		old:         `m.terms.Load().Probes-m.good`,
		new:         `1<<20`,
		test:        "go test -run ^TestProbes$ ./breaker",
	},
	{
		invariant:   "A breaker never changes from a state to the same state.",
		declaration: "breaker.machine.force",
		old:         `f == ForceOpen && state != ForcedOpen`,
		new:         `f == ForceOpen`,
		test:        "go test -run ^TestForce$ ./breaker",
	},
	{
		invariant:   "An adaptive limit takes units in the same step that finds room for them.",
		declaration: "adaptive.limit.take",
		old: `
			if g.TryJoin(c.Units, c.Limit, c.Revision) {
				return true
			}
			join := func() bool {
				if alone(c, most) {
					return g.TryAcquire(lane, units, units)
				}
				got, _ := g.Join(lane, c)
				return got
			}`,
		new: `
			join := func() bool {
				if alone(c, most) {
					return g.TryAcquire(lane, units, units)
				}
				got := g.MayJoin(c)
				if got {
					g.Acquire(lane, units)
				}
				return got
			}`,
		test: "go test -tags sim -run ^TestSimLimit$ ./adaptive",
	},
	{
		invariant:   "The share of ejected endpoints is checked and changed under one lock.",
		declaration: "outlier.pool.complete",
		old:         `c.breaker.Complete(number, now, end, c.in == &p.outside || p.allows(p.taken(c)))`,
		new: `
			mayTrip := c.in == &p.outside || p.allows(p.taken(c))
			p.site.mu.Unlock()
			p.site.mu.Lock()
			c.breaker.Complete(number, now, end, mayTrip)`,
		test: "go test -tags sim -run ^TestSimPool$ ./outlier",
	},
	{
		invariant:   "A system rule lifts its ceiling only after several quiet samples.",
		declaration: "system.ceiling.learn",
		old:         `case refused || off > 0: c.quiet = 0; case c.quiet >= quietSamples:`,
		new:         `case off > 0: c.quiet = 0; case off <= 0:`,
		test:        "go test -run ^TestPlantOfMixedWorkSettles$ ./system",
	},
	{
		invariant:   "A decision by level counts only if its limit and reserves are still in force.",
		declaration: "internal/shed.take",
		old:         `if j.state.Load() == st`,
		new:         `if true`,
		test:        "go test -tags sim -run ^TestSimNoLevelPassesBeforeAHigherOne$ ./internal/shed",
	},
	{
		invariant:   "Units taken under a state that is no longer in force go back.",
		declaration: "internal/shed.take",
		old:         `units.Release()`,
		test:        "go test -tags sim -run ^TestSimNoLevelPassesBeforeAHigherOne$ ./internal/shed",
	},
	{
		invariant:   "The reserve of a level is bounded while an adaptive limit probes.",
		declaration: "internal/shed.law.reserves",
		old:         `float64(most)`,
		new:         `math.Inf(1)`,
		test:        "go test -run ^TestReserves$ ./internal/shed",
	},
	{
		invariant:   "A level that a caller names is bounded.",
		declaration: "internal/engine.Engine.WithReceived",
		old:         `max(of, atMost)`,
		new:         `of`,
		test:        "go test -run ^TestReceivedCriticality$ ./api",
	},
}
