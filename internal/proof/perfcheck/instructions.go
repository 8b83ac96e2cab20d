package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// slack is the allowed excess of a count over its figure, as a share.
const slack = 0.03

// countedWith is the compiler behind the counts in scenario.go: another one generates other
// instructions.
const countedWith = "go1.26"

// A count covers this many calls, after others that fill pools and maps.
const (
	countedCalls = 5_000
	warmUpCalls  = 1_000
)

// counter returns the program that counts instructions, or says why there is none here.
func counter() (valgrind string, err error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("instruction counts are for amd64, and this is %s", runtime.GOARCH)
	}
	if valgrind, err = exec.LookPath("valgrind"); err != nil {
		return "", errors.New("valgrind is not installed")
	}
	return valgrind, nil
}

// checkInstructions reports whether the calls of every scenario stay within their instructions. A
// scenario that can't be counted fails.
func checkInstructions(valgrind string) bool {
	ok := true
	for _, s := range scenarios {
		if s.instructions == 0 {
			continue
		}
		per, err := s.count(valgrind)
		for try := 1; try < tries && err == nil && (s.exceeds(per) || s.misses(per)); try++ {
			per, err = s.count(valgrind)
		}
		if err == nil && s.misses(per) {
			err = fmt.Errorf("valgrind saw %.0f instructions per call, of about %.0f", per, s.instructions)
		}
		if err != nil {
			fmt.Printf("%-20s instructions can't be counted: %v  FAIL\n", s.name, err)
			ok = false
			continue
		}
		fmt.Printf("%-20s %7.0f instructions, %+.1f %%%s\n", s.name, per, 100*(per/s.instructions-1), s.verdict(per))
		ok = ok && !s.exceeds(per)
	}
	if compiler := runtime.Version(); !ok && !strings.HasPrefix(compiler, countedWith+".") {
		fmt.Printf("the counts are for %s, and this is %s, which may explain the difference\n", countedWith, compiler)
	}
	return ok
}

func (s *scenario) exceeds(per float64) bool { return per > s.instructions*(1+slack) }

// misses reports whether callgrind has lost track of the calls: it follows the stack pointer, and
// mistakes a large move for a return.
func (s *scenario) misses(per float64) bool { return per < s.instructions/2 }

// verdict also reports a figure so high that a new cost could hide below it.
func (s *scenario) verdict(per float64) string {
	if per < s.instructions*(1-slack) {
		return "  (lower the figure in scenario.go)"
	}
	return mark(s.exceeds(per))
}

// count returns the instructions of a call of the scenario: those executed by the calling thread
// within counted. The program's start and the runtime's threads are excluded.
func (s *scenario) count(valgrind string) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(valgrind, "--tool=callgrind", "--callgrind-out-file="+os.DevNull, "--toggle-collect=main.counted",
		self, "-count", s.name)
	// One processor, no collections and no preemption: nothing intermittent.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("valgrind: %w: %s", err, bytes.TrimSpace(out))
	}
	n, err := collected(out)
	return float64(n) / countedCalls, err
}

// runCounted is the program under valgrind. It stays on its thread: work on another one would not
// be counted.
func (s *scenario) runCounted() {
	runtime.LockOSThread()
	run := s.setup()
	growStack()
	run(warmUpCalls)
	counted(run)
}

// growStack has the stack moved before anything is counted; see misses.
//
//go:noinline
func growStack() (b byte) {
	var room [64 << 10]byte
	return room[len(os.Args)]
}

// counted is found by its name: valgrind counts the instructions between its call and its return.
//
//go:noinline
func counted(run func(int)) { run(countedCalls) }

var collectedLine = regexp.MustCompile(`Collected : (\d+)`)

// collected finds the count in callgrind's output.
func collected(out []byte) (int, error) {
	m := collectedLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("valgrind printed no count: %s", bytes.TrimSpace(out))
	}
	n, err := strconv.Atoi(string(m[1]))
	if err == nil && n == 0 {
		err = errors.New("valgrind has not seen the calls")
	}
	return n, err
}
