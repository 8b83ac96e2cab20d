package main

// attack is one way to make an engine break a promise. run runs one round of it: it draws the load
// from the round, compares the results with the promises, and returns the violation, or nil.
type attack struct {
	name    string
	promise string
	units   string // its load; and its checks
	run     func(*round) error
}

// attacks run in turn, each for about the same time.
var attacks = []attack{
	{"instants", "64 simultaneous callers get exactly the available units", "calls; rules and refusals", instants},
	{"storms", "no limit is exceeded and no count lost while rules change", "calls; intervals and counts", storms},
	{"panics", "nothing is held at the end, even if user code panics", "calls; panics", panics},
	{"outliers", "a rule ejects no more endpoints than it allows, and readmits them", "calls; verdicts and endpoints", outliers},
	{"machines", "system rules protect a machine that is really overloaded", "calls; verdicts", machines},
	{"learners", "an adaptive rule finds a service's capacity", "calls; verdicts", learners},
	{"sources", "conflicting sources are refused, and rules reported as loaded are in effect", "loads; outcomes", sources},
	{"shadows", "a rule in shadow mode changes no verdict under any caps", "calls on two guards; verdicts", shadows},
	{"loads", "a load of any shape is linear in its rules", "rules; loads", loads},
}
