package main

// statRows break counters, windows, semaphores, queues and token buckets.
var statRows = []row{
	{
		invariant:   "A window counts a call in the same step that finds room for it.",
		declaration: "stat.Window.TryAdd",
		old:         `if w.swap(seen, n) { return w.receiptBy(seen, newest), true }; w.contend()`,
		new:         `w.word.Add(uint64(n)); return w.receiptBy(seen, newest), true`,
		test:        "go test -tags sim -run ^TestSimWindow$ ./stat",
	},
	{
		invariant:   "A window does not count a call that it refuses.",
		declaration: "stat.Window.tryAddWithMutex",
		old:         `if ok = w.fitsLocked(w.head, n, limit); ok { w.putLocked(w.head, n);`,
		new:         `ok = w.fitsLocked(w.head, n, limit); w.putLocked(w.head, n); if ok {`,
		test:        "go test -run ^TestWindowIsItsTwin$ ./stat",
	},
	{
		invariant:   "An older reading of the clock never moves a window back.",
		declaration: "stat.Window.rollLocked",
		old:         `return }; w.collectLocked()`,
		new:         `w.head = number(now, w.width); return }; w.collectLocked()`,
		test:        "go test -run ^TestWindowIsItsTwin$ ./stat",
	},
	{
		invariant:   "A cancelled call leaves the bucket that counted it.",
		declaration: "stat.Window.Cancel",
		old:         `w.putLocked(bucket, -n)`,
		new:         `w.putLocked(w.head, -n)`,
		test:        "go test -run ^TestWindowIsItsTwin$ ./stat",
	},
	{
		invariant:   "A strict window holds its limit in every real interval of its length.",
		declaration: "stat.NewWindow",
		old:         `if shape.Strict { w.span++ }`,
		test:        "go test -run ^TestWindowBoundsOverRealTime$ ./stat",
	},
	{
		invariant:   "A window subtracts no units that it did not take over from the previous window.",
		declaration: "stat.Window.replacedLocked",
		old:         `w.eraOf(r) < w.born`,
		new:         `w.eraOf(r) < w.born && false`,
		test:        "go test -run ^TestWindowLineageIsItsTwin$ ./stat",
	},
	{
		invariant:   "A new window counts the calls admitted between the load of its rule and the first call.",
		declaration: "stat.Counters.SeedWindow",
		old:         `since > 0`,
		new:         `since > 0 && false`,
		test:        "go test -run ^TestCountersSeedWindowWithThePast$ ./stat",
	},
	{
		invariant:   "A call that misses the start of lending still keeps to the limit.",
		declaration: "stat.Window.tryAddOn",
		old:         `total > limit-n || c != nil && c.Part(limit-n-total) > 0`,
		new:         `c != nil && (total > limit-n || c.Part(limit-n-total) > 0)`,
		test:        "go test -tags sim -run ^TestSimWindowThatBeginsToLendEverySchedule$ ./stat",
	},
	{
		invariant:   "A lane's credit is loaded before the total, so its units are of that bucket or an older one.",
		declaration: "stat.Window.tryAddOn",
		old: `
			c, cell, credit := w.cell(lane)
			newest := w.newest.Load()
			if now >= (newest+1)*w.width {
				return w.tryAddWithMutex(lane, now, n, limit)
			}
			seen := w.load()
			total := seen.total()`,
		new: `
			newest := w.newest.Load()
			if now >= (newest+1)*w.width {
				return w.tryAddWithMutex(lane, now, n, limit)
			}
			seen := w.load()
			total := seen.total()
			c, cell, credit := w.cell(lane)`,
		test: "go test -tags sim -run ^TestSimWindowThatLends$ ./stat",
	},
	{
		invariant:   "Unspent units held by lanes cause no refusal.",
		declaration: "stat.Window.tryAddOn",
		old:         `total > limit-n && !seen.lends()`,
		new:         `total > limit-n`,
		test:        "go test -run ^TestWindowCollectsBeforeItRefuses$ ./stat",
	},
	{
		invariant:   "A lane opens each bucket once, even if many callers wait for the lock.",
		declaration: "stat.Counters.turn",
		old:         `newest := l.newest.Load(); if start <= newest.start.Load() { return newest }; c.beginSliceLocked(start)`,
		new:         `c.beginSliceLocked(start)`,
		test:        "go test -tags sim -run ^TestSimCountersTurn$ ./stat",
	},
	{
		invariant:   "A late caller counts in a bucket that readers see.",
		declaration: "stat.Counters.AddPass",
		old:         `if b.pass.Add`,
		new:         `if now < b.start.Load() { b = new(laneBucket) }; if b.pass.Add`,
		test:        "go test -run ^TestCountersJoinTheNewestBucketWhenLate$ ./stat",
	},
	{
		invariant:   "A histogram counts each timed call in one slice.",
		declaration: "stat.Counters.beginSliceLocked",
		old:         `h.start, h.latest = start, [histogramBuckets]uint32{}`,
		new:         `h.start = start`,
		test:        "go test -run ^TestHistogramConserves$ ./stat",
	},
	{
		invariant:   "A semaphore takes permits in the same step that finds them free.",
		declaration: "internal/meter.Semaphore.TryAcquire",
		old:         `} else if plain(w) && g.exchange(w, n) {`,
		new:         `} else { g.Acquire(lane, n);`,
		test:        "go test -tags sim -run ^TestSimSemaphore$ ./internal/meter",
	},
	{
		invariant:   "A caller that finds no permits joins the queue before the lock is released.",
		declaration: "internal/meter.Semaphore.joinLocked",
		old:         `g.enqueue(place)`,
		new:         `g.release(); g.lock(); g.enqueue(place)`,
		test:        "go test -tags sim -run ^TestSimQueue$ ./internal/meter",
	},
	{
		invariant:   "A waiter that has left the queue is granted nothing.",
		declaration: "internal/meter.Waiter.leaveAt",
		old:         `g.expire(w)`,
		new:         `w.wake = nil`,
		test:        "go test -run ^TestLeavingTheLine$ ./internal/meter",
	},
	{
		invariant:   "A share at or above its fair part gets no units while one below waits.",
		declaration: "internal/meter.shares.pickOf",
		old:         `least == nil || s.below(least, limit)`,
		new:         `true`,
		test:        "go test -run ^TestSharesAreTheirTwin$ ./internal/meter",
	},
	{
		invariant:   "A share that didn't wait has earned nothing meanwhile.",
		declaration: "internal/meter.shares.begin",
		old:         `x.used = from - x.pending`,
		new:         ``,
		test:        "go test -run ^TestSharesAreTheirTwin$ ./internal/meter",
	},
	{
		invariant:   "While a semaphore has shares, its word is frozen.",
		declaration: "internal/meter.Semaphore.setSharingLocked",
		old:         `g.stays |= isShared`,
		new:         ``,
		test:        "go test -tags sim -run ^TestSimShares$ ./internal/meter",
	},
	{
		invariant:   "The waiters behind one that leaves a throttle's queue advance.",
		declaration: "internal/meter.Turn.Leave",
		old:         `t.queue.remove(x)`,
		new: `
			if next := x.after; next != nil {
				next.cost, t.queue.cost = next.cost.plus(x.cost), t.queue.cost.plus(x.cost)
			}
			t.queue.remove(x)`,
		test: "go test -run ^TestGoodputOfImpatientCallers$ ./flow",
	},
	{
		invariant:   "No more units jump ahead of a waiter than it asks for.",
		declaration: "internal/meter.ranks.spot",
		old:         `due.Later(p.cost) == p.cost`,
		new:         `true`,
		test:        "go test -run ^TestTurnsAreOvertaken$ ./internal/meter",
	},
	{
		invariant:   "After a stall, calls still run spaced: overdue turns are postponed.",
		declaration: "internal/meter.Pacer.grantDue",
		old:         `late <= max(cost.ns, lateness)`,
		new:         `late <= int64(time.Hour)`,
		test:        "go test -run ^TestTurnsMoveOnAfterAStall$ ./internal/meter",
	},
	{
		invariant:   "A call's cost in time is not rounded, so a throttle keeps its rate.",
		declaration: "internal/meter.Cost",
		old:         `c := float64(n) * perUnit`,
		new:         `c := math.Round(float64(n)*perUnit/1e6) * 1e6`,
		test:        "go test -run ^TestThrottleKeepsItsRate$ ./flow",
	},
	{
		invariant:   "A token bucket takes back no units that time has already refilled.",
		declaration: "internal/meter.TokenBucket.GiveBack",
		old:         `if taken.At != b.seen`,
		new:         `if false`,
		test:        "go test -run ^TestTokenBucketGiveBackNeverOverfills$ ./internal/meter",
	},
	{
		invariant:   "A call that waits as long as RetryAfter says finds its tokens.",
		declaration: "internal/meter.TokenBucket.RetryAfter",
		old:         `if at.frac > 0 { at.ns++ }`,
		test:        "go test -run ^TestTokenBucketRoundsUpOnlyTheWait$ ./internal/meter",
	},
}
