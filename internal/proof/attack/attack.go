package main

// attack is one way to make an engine break a promise. run makes one round of it: it
// draws from the round what it offers, compares what comes of it with what was promised,
// and returns what was wrong, or nil.
type attack struct {
	name    string
	promise string
	units   string // what it offers; and what it checks
	run     func(*round) error
}

// attacks are made in turn, each for about the same time.
var attacks = []attack{
	{"instants", "64 callers at an instant get what there is, and no more", "calls; rules and refusals", instants},
	{"storms", "no limit is passed and no count lost while rules change", "calls; intervals and counts", storms},
	{"panics", "whatever panics, nothing is held in the end", "calls; panics", panics},
	{"outliers", "no more endpoints are ejected than a rule allows, and they come back", "calls; verdicts and endpoints", outliers},
	{"machines", "system rules hold a machine that is overloaded for real", "calls; verdicts", machines},
	{"learners", "an adaptive rule finds what a service can do", "calls; verdicts", learners},
	{"sources", "sources go together or tell why not, and what is told as loaded is in force", "loads; outcomes", sources},
	{"shadows", "a rule in shadow mode changes no verdict, whatever the caps", "calls on two guards; verdicts", shadows},
	{"loads", "a load of any shape is linear in its rules", "rules; loads", loads},
}
