package main

// replayRows break replays of logs.
var replayRows = []row{
	{
		invariant:   "A Sorter passes an event on only when none within the window can precede it.",
		declaration: "internal/accesslog.Sorter.Pop",
		old:         `s.newest-s.items[0].At < s.window`,
		new:         `s.newest == s.items[0].At`,
		test:        "go test -run ^TestSorter$ ./internal/accesslog",
	},
	{
		invariant:   "A folded place stays folded, whichever of two places is merged into the other.",
		declaration: "internal/accesslog.Namer.merge",
		old:         `from.folded && !into.folded`,
		new:         `false`,
		test:        "go test -run ^TestFolding$ ./internal/accesslog",
	},
	{
		invariant:   "A quote that a client sends into a user's name can't move the stamp of its line.",
		declaration: "internal/accesslog.combinedLine.parse",
		old:         `bytes.LastIndexByte(line[:close], '[')`,
		new:         `bytes.IndexByte(line[:close], '[')`,
		test:        "go test -run ^TestFormats$ ./internal/accesslog",
	},
	{
		invariant:   "The arrival is the end less the duration.",
		declaration: "internal/accesslog.Record.ended",
		old:         `r.At = at - int64(took)`,
		new:         `r.At = at`,
		test:        "go test -run ^TestFormats$ ./internal/accesslog",
	},
	{
		invariant:   "A text that takes another's place inherits its count as an error bound.",
		declaration: "internal/sketch.Frequent.Add",
		old:         `Text{text, c.Count + n, c.Count}`,
		new:         `Text{text, n, 0}`,
		test:        "go test -run ^TestFrequent$ ./internal/sketch",
	},
	{
		invariant:   "A call that waits for another to end runs when it ends.",
		declaration: "internal/simulation.Simulation.Step",
		old:         `s.wake()`,
		new:         `_ = s`,
		test:        "go test -run ^TestTimeOfCalls$ ./replay",
	},
	{
		invariant:   "A call that is earlier than the one before it arrives with that one.",
		declaration: "replay.player.play",
		old:         `max(call.At.UnixNano(), p.last)`,
		new:         `call.At.UnixNano()`,
		test:        "go test -run ^TestLateCall$ ./replay",
	},
}
