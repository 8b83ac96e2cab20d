package tables

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine describes the machine and commit on which numbers were measured.
type Machine struct {
	Processor string // the model
	Platform  string
	Cores     int
	MaxProcs  int
	GoVersion string
	Commit    string
	Day       string
}

// ThisMachine describes this machine, and the checkout in the current folder.
func ThisMachine() Machine {
	return Machine{
		Processor: processor(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
		Cores:     runtime.NumCPU(),
		MaxProcs:  runtime.GOMAXPROCS(0),
		GoVersion: runtime.Version(),
		Commit:    commit(),
		Day:       time.Now().UTC().Format(time.DateOnly),
	}
}

// String returns two lines.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, GOMAXPROCS %d\n%s %s, commit %s, %s\n",
		m.Processor, m.Cores, m.MaxProcs, m.GoVersion, m.Platform, m.Commit, m.Day)
}

// processor returns the model that Linux reports.
func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor unknown"
}

// commit returns the checked-out commit, and whether code has changed since.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	// The pages that keep the tables are part of the tree.
	changed, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(top,exclude)docs", ":(top,exclude)*.md").Output()
	if err != nil || len(strings.TrimSpace(string(changed))) > 0 {
		return strings.TrimSpace(string(hash)) + " with changes"
	}
	return strings.TrimSpace(string(hash))
}
