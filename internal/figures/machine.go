package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine says where figures were taken, and of what.
type machine struct {
	goVersion, platform string
	cores, maxProcs     int
	processor           string // "" if it isn't known
	commit              string
	size                string
	day                 string
}

func (m machine) String() string {
	second := ""
	if m.processor != "" {
		second = m.processor + "\n"
	}
	return fmt.Sprintf("%s %s, %d cores, GOMAXPROCS %d\n%scommit %s, FIGURES=%s, %s\n",
		m.goVersion, m.platform, m.cores, m.maxProcs, second, m.commit, m.size, m.day)
}

func thisMachine(root, size string) machine {
	m := machine{
		goVersion: runtime.Version(),
		platform:  runtime.GOOS + "/" + runtime.GOARCH,
		cores:     runtime.NumCPU(),
		maxProcs:  runtime.GOMAXPROCS(0),
		processor: processor(),
		commit:    "unknown",
		size:      size,
		day:       time.Now().UTC().Format(time.DateOnly),
	}
	if text, err := output(root, "git", "rev-parse", "--short=12", "HEAD"); err == nil {
		m.commit = strings.TrimSpace(text)
		// The page that keeps the table is itself part of the tree.
		if text, err := output(root, "git", "status", "--porcelain", "--", ".", ":!"+pageFile); err != nil || strings.TrimSpace(text) != "" {
			m.commit += " with changes"
		}
	}
	return m
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	return string(text), err
}

// processor is the model that Linux names.
func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
