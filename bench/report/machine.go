package report

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine says where figures were taken, and of what, in two lines.
func Machine() string {
	return fmt.Sprintf("%s, %d cores\n%s %s/%s, commit %s, %s\n",
		Processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit(), time.Now().UTC().Format(time.DateOnly))
}

// Processor is the model that Linux names.
func Processor() string {
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

// commit is what is checked out, and whether code was changed since.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	// The pages that keep the tables are part of the tree.
	changed, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(top,exclude)docs").Output()
	if err != nil || len(strings.TrimSpace(string(changed))) > 0 {
		return strings.TrimSpace(string(hash)) + " with changes"
	}
	return strings.TrimSpace(string(hash))
}
