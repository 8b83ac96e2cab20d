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
	{"breakers", "breakers open when they must, only then, and recover", "calls; verdicts and states", breakers},
	{"machines", "system rules hold a machine that is overloaded for real", "calls; verdicts", machines},
	{"learners", "an adaptive rule finds what a service can do", "calls; verdicts", learners},
	{"sources", "sources go together or tell why not, and what is told as loaded is in force", "loads; outcomes", sources},
	{"readers", "readers that stall cost a bounded memory", "readers; pages", readers},
	{"values", "each value has a limit of its own, and equal ones one", "calls; verdicts", values},
	{"verdicts", "each verdict is the one that a log of the calls demands", "calls; verdicts and waits", verdicts},
	{"queues", "a queue serves what it can, also as callers leave it", "callers; turns", queues},
	{"handovers", "what waiting calls hold goes with a rule that changes", "calls; verdicts", handovers},
	{"warmups", "a cold resource gives its share, a warm one all", "calls; limits", warmups},
	{"ends", "rules work where the range of time ends", "calls; verdicts and readings", ends},
	{"logs", "a line of the log is one line, and a flood of them is bounded", "calls; lines", logs},
	{"names", "whatever it is called can be loaded and shown", "names; texts", names},
	{"shadows", "a rule in shadow mode changes no verdict, whatever the caps", "calls on two guards; verdicts", shadows},
	{"copies", "what goes in and out is a copy", "rules; places in memory", copies},
	{"loads", "a load of any shape is linear in its rules", "rules; loads", loads},
}
