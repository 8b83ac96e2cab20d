package main

// The targets with a reason beside them.
const (
	noRule          = "no rule, two nodes"
	oneRule         = "one exact reject rule"
	fourNodes       = "context, origin and inbound root: four nodes, one rule"
	sixFamilies     = "one rule of each of six families, four nodes"
	coarseClock     = "coarse clock, one rule"
	throttledWait   = "a throttled wait: allocations"
	prioritizedWait = "a prioritized wait: allocations"
	throttledEnds   = "a throttled wait that its context can end: allocations"
	prioritizedEnds = "a prioritized wait that its context can end: allocations"
)

// reasons are what the profile shows in the way of a target, for when it is missed:
// callgrind's instructions, and atomic operations, each of which takes 5 to 6 ns on the
// machine of docs/benchmarks.md, a ninth of the unit.
var reasons = map[string]string{
	noRule: "the unit is 1 of it; five atomic operations are 0.5 (each node on entering and on leaving, " +
		"and the exit that happens once), the pool of calls 0.2; the rest is 1,400 instructions, " +
		"400 of them the chain of slots and what recovers their panics",
	oneRule: "on top of no rule one atomic operation, the window's, and 400 instructions: the rule, " +
		"the reservation, and the look at the node for other windows",
	fourNodes: "two nodes more than with one rule are four atomic operations more, 0.4: " +
		"each node counts a call when it enters and when it exits",
	sixFamilies: "4,100 instructions, 2,520 of them the call's on its four nodes and its flow rule's; " +
		"16 atomic writes, a ninth of the unit each: 9 of the call, 1 each of flow, system and breaker, " +
		"2 each of hotspot and isolation",
	coarseClock: "no reading of the clock is left in it: six atomic operations are 0.6, the pool 0.2, " +
		"and 1,900 instructions the rest",
	throttledEnds: "a timer that is kept for the next call would allocate nothing, " +
		"and not wake in a synctest bubble",
	prioritizedEnds: "the timer's, as above",
}
