package main

// The targets with a reason beside them.
const (
	noRule          = "no rule, two nodes"
	oneRule         = "one exact reject rule"
	fourNodes       = "context, origin and inbound root: four nodes, one rule"
	coarseClock     = "coarse clock, one rule"
	throttledWait   = "a throttled wait: allocations"
	prioritizedWait = "a prioritized wait: allocations"
)

// inTheWay says what the profile shows in the way of a target, for when it is missed:
// callgrind's instructions, and atomic operations at 5 to 6 ns each on the machine of
// docs/benchmarks.md, a ninth of the unit.
var inTheWay = map[string]string{
	noRule: "two readings of the clock are 1 of it; five atomic operations, one for each node on entering and on leaving and one " +
		"so that an entry exits once, are 0.5; the pool of calls 0.2; the rest are 1,400 instructions in a chain of slots that may panic",
	oneRule: "the window itself is one compare-and-swap and 43 instructions; what comes on top of no rule are 500 instructions that " +
		"find the rule's node and window, reserve, look on the node for other windows, and drop the reservation",
	fourNodes:       "two nodes more are four atomic operations more, 0.4, as each node is counted on entering and on leaving",
	coarseClock:     "without a clock the call is what it is: six atomic operations are 0.6, the pool 0.2, and 2,000 instructions the rest",
	throttledWait:   "all of them are the timer's; one that is kept for the next call would not wake in a synctest bubble",
	prioritizedWait: "as a throttled one",
}
