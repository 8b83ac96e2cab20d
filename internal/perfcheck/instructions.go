package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// instructions is how many a call of a scenario takes: the difference between a long
// run and a short one, so that starting up doesn't count.
func instructions(valgrind, scenario string) (int, error) {
	const short, long = 2_000, 12_000
	few, err := count(valgrind, scenario, short)
	if err != nil {
		return 0, err
	}
	many, err := count(valgrind, scenario, long)
	if err != nil {
		return 0, err
	}
	return (many - few) / (long - short), nil
}

var collected = regexp.MustCompile(`Collected : (\d+)`)

func count(valgrind, scenario string, calls int) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(valgrind, "--tool=callgrind", "--callgrind-out-file="+os.DevNull,
		self, "-run", scenario, "-calls", strconv.Itoa(calls))
	// One processor, no collections and no preemption: nothing that comes and goes.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	m := collected.FindSubmatch(out)
	if err != nil || m == nil {
		return 0, fmt.Errorf("valgrind: %w: %s", err, out)
	}
	return strconv.Atoi(string(m[1]))
}
