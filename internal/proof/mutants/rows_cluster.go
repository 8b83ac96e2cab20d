package main

// clusterRows break limits that members share through a store.
var clusterRows = []row{
	{
		invariant:   "Units borrowed from an upcoming bucket don't make it the current one.",
		declaration: "cluster.memoryWindow.borrow",
		old:         `w.put(b, t.Need)`,
		new:         `w.put(b, t.Need); w.advance(b)`,
		test:        "go test -run ^TestMemoryIsAStore$ ./cluster",
	},
	{
		invariant:   "Units that are returned twice count once.",
		declaration: "cluster.memoryWindow.settle",
		old:         `!fresh || t.Epoch != w.epoch`,
		new:         `t.Epoch != w.epoch`,
		test:        "go test -run ^TestMemoryIsAStore$ ./cluster",
	},
	{
		invariant:   "A window that the store moves gets an epoch that it never had.",
		declaration: "cluster.memoryWindow.roll",
		old:         `t.NextEpoch(w.epoch)`,
		new:         `t.NewEpoch`,
		test:        "go test -run ^TestMemoryIsAStore$ ./cluster",
	},
	{
		invariant:   "Members that fell short leave a share for the next member that asks.",
		declaration: "cluster.memoryWindow.sharers",
		old:         `max(w.shortBefore, w.short)+1`,
		new:         `max(w.shortBefore, w.short, 1)`,
		test:        "go test -run ^TestNowAndThen$ ./internal/proof/clustersim",
	},
	{
		invariant:   "A lease of an upcoming bucket starts no earlier than the bucket.",
		declaration: "internal/sharing.newLot",
		old:         `starts: received`,
		new:         `starts: sent`,
		test:        "go test -run ^TestExact$ ./internal/proof/clustersim",
	},
	{
		invariant:   "A unit of a shared token bucket is used at most slack before its turn, counted from the reply's arrival.",
		declaration: "internal/sharing.tokens.add",
		old:         `begin := received + t.lag`,
		new:         `begin := sent + t.lag`,
		test:        "go test -run ^TestBuckets$ ./internal/proof/clustersim",
	},
	{
		invariant:   "A unit of a shared token bucket is used before its turn has passed, counted from the command's sending.",
		declaration: "internal/sharing.tokens.at",
		old:         `if r.next < earliest {`,
		new:         `if false {`,
		test:        "go test -run ^TestBuckets$ ./internal/proof/clustersim",
	},
	{
		invariant:   "Units of a shared token bucket that a call gives back in parts come back once.",
		declaration: "internal/sharing.tokens.giveBack",
		old: `others = token - n*t.spacing
		if others`,
		new: `others = token
		if others-n*t.spacing`,
		test: "go test -run ^TestSettledUnitsOfABucket$ ./internal/sharing",
	},
	{
		invariant:   "A shared token bucket of another rate is short of as many units as before.",
		declaration: "cluster.memoryTokens.do",
		old:         `v.full > now && v.unit != t.Unit`,
		new:         `false`,
		test:        "go test -run ^TestMemoryIsAStore$ ./cluster",
	},
	{
		invariant:   "The store takes the units of a shared token bucket that a member gave out without it.",
		declaration: "internal/sharing.Bucket.chargeFallbackLocked",
		old:         `t.fallback.units+n`,
		new:         `t.fallback.units`,
		test:        "go test -run ^TestBucketWithoutTheStore$ ./internal/sharing",
	},
	{
		invariant:   "A call spends a lane's credit only before the end of its own lease.",
		declaration: "internal/sharing.lease.take",
		old: `
			credit := cell.Load()
			word := l.word.Load()
			if now >= l.end.Load() {
				return 0, false, false
			}`,
		new: `
			if now >= l.end.Load() {
				return 0, false, false
			}
			credit := cell.Load()
			word := l.word.Load()`,
		test: "go test -tags sim -run ^TestSimLeaseEverySchedule$ ./internal/sharing",
	},
	{
		invariant:   "Permits are withdrawn before the permits in use are counted, so no call takes a permit that is being returned.",
		declaration: "internal/sharing.permits.giveUp",
		old:         `if used = p.inUse.InUse(); used == 0`,
		new:         `if used == 0`,
		test:        "go test -tags sim -run ^TestSimPermits$ ./internal/sharing",
	},
}
