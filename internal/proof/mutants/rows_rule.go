package main

// ruleRows break rule files and sources, and the console.
var ruleRows = []row{
	{
		invariant:   "A number too small to represent is rejected, not read as 0.",
		declaration: "rules.isZero",
		old:         `return !strings.ContainsAny(mantissa, "123456789")`,
		new:         `return mantissa != "-"`,
		test:        "go test -run ^TestNumbersThatVanish$ ./rules",
	},
	{
		invariant:   "Any text that is written as YAML is read back unchanged.",
		declaration: "rules.textNode",
		old:         `|| s == "<<"`,
		test:        "go test -run ^TestEveryTextIsReadBack$ ./rules",
	},
	{
		invariant:   "A cached file is synced before it gets its name.",
		declaration: "rules.replaceFile",
		old:         `if err == nil { err = f.Sync() }`,
		test:        "go test -run ^TestCacheIsWholeAtEveryStep$ ./rules",
	},
	{
		invariant:   "A rule that moves from file to file is in force all the time.",
		declaration: "rules.fileWatch.look",
		old:         `if !wait`,
		new:         `if true`,
		test:        "go test -run ^TestLoaderMovesARuleWithoutAGap$ ./rules",
	},
	{
		invariant:   "The rules of a directory that can't be read stay in force.",
		declaration: "rules.fileWatch.readDir",
		old:         `if d.err != nil { return all }`,
		test:        "go test -run ^TestLoaderDirectoryAway$ ./rules",
	},
	{
		invariant:   "The console serves only the host names it knows.",
		declaration: "observe/console.console.handler",
		old:         `!c.knows(r.Host)`,
		new:         `false && !c.knows(r.Host)`,
		test:        "go test -short -run ^TestHosts$ ./observe/console",
	},
}
