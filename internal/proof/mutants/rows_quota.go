package main

// quotaRows break quotas.
var quotaRows = []row{
	{
		invariant:   "A period that was left isn't entered again by a late call.",
		declaration: "internal/calendar.Meter.At",
		old:         `now >= m.span.End || m.span == (Span{})`,
		new:         `!m.span.Has(now)`,
		test:        "go test -tags sim -run ^TestSimQuota$ ./flow",
	},
	{
		invariant:   "Units go back to the period in which their call entered.",
		declaration: "internal/calendar.Meter.GiveBack",
		old:         `period == m.began`,
		new:         `true`,
		test:        "go test -short -run ^TestQuotasAgreeWithAList$ ./api",
	},
	{
		invariant:   "Units are charged to the period in which their call entered.",
		declaration: "internal/calendar.Meter.Charge",
		old:         `period != m.began`,
		new:         `false`,
		test:        "go test -short -run ^TestQuotasAgreeWithAList$ ./api",
	},
	{
		invariant:   "Periods have different identities, even if the calendar changes back and forth.",
		declaration: "internal/calendar.Meter.At",
		old:         `max(m.began, last.End)`,
		new:         `m.began`,
		test:        "go test -run ^TestALateSettlementOfAnEarlierCalendar$ ./internal/calendar",
	},
	{
		invariant:   "Units used stay used in another calendar.",
		declaration: "internal/calendar.Meter.Follow",
		old:         `m.span = c.At(max(now, m.span.Start))`,
		new:         `*m = Meter{}`,
		test:        "go test -short -run ^TestQuotasAgreeWithAList$ ./api",
	},
	{
		invariant:   "An hour that the clocks skip ends before a period that starts in it begins.",
		declaration: "internal/calendar.Calendar.earliest",
		old:         `begins = max(begins, from.Unix())`,
		test:        "go test -run ^TestPeriodsOfAnotherCalendar$ ./internal/calendar",
	},
	{
		invariant:   "A month without the day starts on its last one.",
		declaration: "internal/calendar.Calendar.begins",
		old:         `min(c.start.day, last)`,
		new:         `max(c.start.day, last)`,
		test:        "go test -run ^TestPeriodsOfAnotherCalendar$ ./internal/calendar",
	},
	{
		invariant:   "A value whose period isn't over keeps its place.",
		declaration: "hotspot.controller.forgettableLocked",
		old:         `x.period == nil || x.period.Idle(now)`,
		new:         `true`,
		test:        "go test -run ^TestQuotaOfManyValues$ ./hotspot",
	},
	{
		invariant:   "A value that was evicted isn't given units of a period before its eviction.",
		declaration: "hotspot.shard.notBefore",
		old:         `max(now, s.forgotten)`,
		new:         `now`,
		test:        "go test -tags sim -run ^TestSimQuotaOfValues$ ./hotspot",
	},
	{
		invariant:   "A resource whose quota is in use isn't dropped.",
		declaration: "flow.quota.idle",
		old:         `e.account.idle(now)`,
		new:         `true`,
		test:        "go test -run ^TestQuotaOfAnIdleResource$ ./flow",
	},
}
