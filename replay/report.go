package replay

import "time"

// Report is the outcome of calls. Times are in UTC.
type Report struct {
	From, To time.Time // arrivals of the first and the last call
	Offered  int64     // all calls
	Passed   int64     // calls that ran
	Refused  int64
	Waited   int64 // calls that ran after a wait
	Failed   int64 // calls that ran and failed
	// Cut is the number of calls that ended early, because a million others were running.
	Cut int64
	// Clients is the number of clients; from 4096 on an estimate, with an error of about 1 %.
	Clients int64
	// Rules are the rules, family by family in the order of their declaration, without ones that are
	// off.
	Rules []Rule
}

// Rule is the outcome of one rule.
type Rule struct {
	Kind     string // its family, such as "flow"
	ID       string
	Resource string // as in the rule: a name or a pattern
	Shadow   bool   // it refuses nothing: Refused counts the calls that it would have refused

	Offered int64 // calls of resources to which the rule applies
	Passed  int64 // calls among them that ran
	Refused int64 // calls that this rule refused; other rules refused the rest
	// Waited counts calls among the passed ones that waited, of a rule that makes calls wait. If
	// several such rules apply to a call, its wait counts at each. WaitP50 and WaitP99 are the
	// median wait and the 99th percentile; WaitMax is the longest.
	Waited                    int64
	WaitP50, WaitP99, WaitMax time.Duration
	// Worst is the second in which the rule refused the most calls; none of a rule in shadow mode.
	Worst Second
	// Clients is the number of clients whose calls the rule refused, estimated like that of the
	// Report, and Top are the most refused ones, ten at most; none of a rule in shadow mode.
	Clients int64
	Top     []Client
	// Opened is the number of times that a breaker opened.
	Opened int64
}

// Second is a second of the clock, and the calls in it.
type Second struct {
	At      time.Time // its beginning; zero if there is none
	Offered int64
	Refused int64
}

// Client is a client, and the number of its calls that a rule refused. If a rule refused calls of
// more than a thousand clients, it is a lower bound.
type Client struct {
	Name    string
	Refused int64
}
