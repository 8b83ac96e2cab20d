package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/proof/figure"
)

// result holds the figures that a check reported.
type result struct {
	check
	env     []string // for the command
	figures []figure.Figure
}

// runChecks runs the checks, continues when one fails, and returns the failures. Checks that
// measure run first, one after the other, since they would disturb each other; then checks that
// count violations in schedules run in parallel, on one processor each.
func runChecks(root, size string, checks []check) (results []result, failed []string) {
	workspace, err := modulesIn(root)
	if err != nil {
		return nil, []string{err.Error()}
	}
	results = make([]result, len(checks))
	failures := make([]string, len(checks))
	var printing sync.Mutex
	done := 0
	one := func(i int) {
		start := time.Now()
		r := &results[i]
		r.check = checks[i]
		if !slices.Contains(workspace, moduleOf(root, r.dir)) {
			r.env = []string{"GOWORK=off"}
		}
		output, err := r.run(root, size)
		printing.Lock()
		defer printing.Unlock()
		done++
		fmt.Fprintf(os.Stderr, "%2d/%d  %-45s %6.1f s  %d figures\n",
			done, len(checks), r.check, time.Since(start).Seconds(), len(r.figures))
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s\n%v\n", tail(output), err)
			failures[i] = r.check.String() + " failed"
		case len(r.figures) == 0:
			failures[i] = r.check.String() + " reported no figure"
		}
	}
	for i, c := range checks {
		if !c.schedules() {
			one(i)
		}
	}
	var running sync.WaitGroup
	free := make(chan struct{}, runtime.NumCPU())
	for i, c := range checks {
		if c.schedules() {
			running.Go(func() {
				free <- struct{}{}
				one(i)
				<-free
			})
		}
	}
	running.Wait()
	for _, f := range failures {
		if f != "" {
			failed = append(failed, f)
		}
	}
	return results, failed
}

// run runs the check and reads its figures, even if it fails.
func (r *result) run(root, size string) (output string, err error) {
	file, err := os.CreateTemp("", "figures-*.jsonl")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	const limit = "12h" // each test ends by itself
	args := slices.Concat([]string{"test", "-count=1", "-timeout=" + limit}, r.flags, []string{"."})
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(r.dir))
	cmd.Env = slices.Concat(os.Environ(), r.env, []string{figure.FileEnv + "=" + file.Name(), figure.SizeEnv + "=" + size})
	text, failed := cmd.CombinedOutput()
	r.figures, err = readFigures(file)
	return string(text), errors.Join(failed, err)
}

func readFigures(file *os.File) (figures []figure.Figure, err error) {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var f figure.Figure
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&f); err != nil {
			return figures, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		figures = append(figures, f)
	}
	return figures, lines.Err()
}

// modulesIn returns the folders of the modules in go.work.
func modulesIn(root string) ([]string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}")
	cmd.Dir = root
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// moduleOf returns the folder of a package's module.
func moduleOf(root, dir string) string {
	at := filepath.Join(root, filepath.FromSlash(dir))
	for at != root {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		at = filepath.Dir(at)
	}
	return root
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 4000
	if len(text) > most {
		text = "... " + text[len(text)-most:]
	}
	return text
}
