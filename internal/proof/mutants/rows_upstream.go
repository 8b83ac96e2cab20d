package main

// upstreamRows break upstream rules, and how they learn of answers.
var upstreamRows = []row{
	{
		invariant:   "A retry is admitted and counted in one step.",
		declaration: "upstream.budget.take",
		old:         `b.word.CompareAndSwap(w, w+oneRetry)`,
		new:         `b.word.Add(oneRetry) != w`,
		test:        "go test -tags sim -run ^TestSimRetryBudgetEverySchedule$ ./upstream",
	},
	{
		invariant:   "A call that isn't a retry is in the budget's calls in flight.",
		declaration: "upstream.budget.take",
		old:         `b.word.Add(oneCall)`,
		new:         `b.word.Add(0)`,
		test:        "go test -run ^TestBudgetAgainstItsTwin$ ./upstream",
	},
	{
		invariant:   "A later answer does not shorten a pause.",
		declaration: "upstream.pauses.add",
		old:         `s.until > x.span.Load().until`,
		new:         `s.until > 0`,
		test:        "go test -run ^TestLaterAnswersOnlyExtend$ ./upstream",
	},
	{
		invariant:   "A rule pauses a bounded number of resources.",
		declaration: "upstream.pauses.add",
		old:         `len(next) >= maxPaused`,
		new:         `len(next) > 1<<30`,
		test:        "go test -run ^TestPausesAreBounded$ ./upstream",
	},
	{
		invariant:   "Callers don't all come back at the instant at which a pause ends.",
		declaration: "upstream.pauses.admit",
		old:         `chance > 0 && p.draw() < chance`,
		new:         `chance > 0`,
		test:        "go test -run ^TestAPauseEndsSpread$ ./upstream",
	},
	{
		invariant:   "An absurd time pauses nothing.",
		declaration: "upstream.spanOf",
		old:         `asked > absurd`,
		new:         `asked < 0`,
		test:        "go test -run ^TestLaterAnswersOnlyExtend$ ./upstream",
	},
	{
		invariant:   "A server that seems dead gets one call a second.",
		declaration: "upstream.tally.probability",
		old:         `t.accepts == 0`,
		new:         `t.accepts < 0`,
		test:        "go test -run ^TestADeadServerGetsACallASecond$ ./upstream",
	},
	{
		invariant:   "A call refused by the throttle is a request.",
		declaration: "upstream.throttle.admit",
		old:         `t.countLocked(tally{requests: 1})`,
		test:        "go test -run ^TestThrottleAgainstItsTwin$ ./upstream",
	},
	{
		invariant:   "A call whose end says nothing is neither a request nor accepted.",
		declaration: "upstream.state.Complete",
		old:         `&& !inv.Neutral()`,
		test:        "go test -run ^TestWhatCounts$ ./upstream",
	},
	{
		invariant:   "A reload keeps the pauses of a rule.",
		declaration: "upstream.compile",
		old:         `r.Obey && old != nil`,
		new:         `r.Obey && old == nil`,
		test:        "go test -run ^TestReloadsKeepPauses$ ./upstream",
	},
	{
		invariant:   "A refusal by a rule below a call is no answer of a server.",
		declaration: "internal/engine.Engine.hear",
		old:         `errors.Is(err, core.ErrBlocked)`,
		new:         `errors.Is(err, core.ErrDraining)`,
		test:        "go test -run ^TestOwnRefusalsAreNoFailures$ ./api",
	},
	{
		invariant:   "The answer of another host than the one that was asked pauses nothing.",
		declaration: "adapters/nethttp.overloads",
		old:         `from == nil || from.Response == nil`,
		new:         `from == nil || from.Response != nil`,
		test:        "go test -run ^TestTransportKnowsWhoAnswered$ ./adapters/nethttp",
	},
	{
		invariant:   "A date in Retry-After is measured against the date of the answer.",
		declaration: "adapters/internal/response.RetryAfter",
		old:         `err == nil && err2 == nil`,
		new:         `err == nil || err2 == nil`,
		test:        "go test -run ^TestRetryAfter$ ./adapters/internal/response",
	},
}
