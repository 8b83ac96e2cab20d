package main

// The targets that have a reason.
const (
	noRule          = "no rule, two nodes"
	oneRule         = "one exact reject rule"
	fourNodes       = "context, origin and inbound root: four nodes, one rule"
	sixFamilies     = "one rule of each of six families, four nodes"
	coarseClock     = "coarse clock, one rule"
	refusedOfPass   = "refused, of a pass"
	throttledWait   = "a throttled wait: allocations"
	prioritizedWait = "a prioritized wait: allocations"
	throttledEnds   = "a throttled wait that its context can end: allocations"
	prioritizedEnds = "a prioritized wait that its context can end: allocations"
)

// reasons explain missed targets from the profile: callgrind's instructions, and atomic operations.
// Each of those takes 5 to 6 ns on the machine of docs/benchmarks.md, a ninth of the unit.
var reasons = map[string]string{
	noRule: "the unit is 1 of it; three atomic operations are 0.3 (the call's node on entering and on leaving, " +
		"and the exit that happens once), the pool of calls 0.2; the rest is 1,300 instructions, " +
		"400 of them the chain of slots and what recovers their panics",
	oneRule: "on top of no rule one atomic operation, the window's, and 300 instructions: the rule, " +
		"the reservation, and the look at the node for other windows",
	fourNodes: "two nodes more than with one rule are four atomic operations more, 0.4: " +
		"each node counts a call when it enters and when it exits",
	sixFamilies: "4,000 instructions, 2,450 of them the call's on its four nodes and its flow rule's; " +
		"14 atomic writes, a ninth of the unit each: 7 of the call, 1 each of flow, system and breaker, " +
		"2 each of hotspot and isolation",
	coarseClock: "no reading of the clock is left in it: four atomic operations are 0.4, the pool 0.2, " +
		"and 1,700 instructions the rest",
	refusedOfPass: "1,140 instructions and two atomic operations, the node's and the log's, to a pass of 1,820 and four: " +
		"whatever makes both cheaper makes it more of a pass",
	throttledEnds: "a timer that is kept for the next call would allocate nothing, " +
		"and not wake in a synctest bubble",
	prioritizedEnds: "the timer's, as above",
}
