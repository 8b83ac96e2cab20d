package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	trees "github.com/penstock-go/penstock/internal/proof/source"
)

func main() {
	run := flag.String("run", "", "run rows whose declaration or invariant matches this `regexp`")
	jobs := flag.Int("j", 2, "rows that run at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runRows(ctx, os.Stdout, *run, max(1, *jobs)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func runRows(ctx context.Context, out io.Writer, only string, jobs int) error {
	choose, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	root, err := trees.Root()
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !choose.MatchString(r.String()) })
	if len(chosen) == 0 {
		return fmt.Errorf("no row matches %q", only)
	}
	var (
		mu     sync.Mutex // guards counts, done and out
		counts = make(map[outcome]int)
		done   int
		wg     sync.WaitGroup
		places = make(chan struct{}, jobs)
	)
	for _, r := range chosen {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			became, output, cpu := r.run(ctx, root)
			mu.Lock()
			defer mu.Unlock()
			counts[became]++
			done++
			fmt.Fprintf(out, "%3d/%d  %-13s %3.0f CPU s  %s\n", done, len(chosen), became, cpu.Seconds(), r)
			if became != killed {
				lines := strings.SplitAfterN(output, "\n", 13)
				fmt.Fprintf(out, "%s  go run ./internal/proof/mutants -run '%s'\n", strings.Join(lines[:min(12, len(lines))], ""), pattern(r))
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d killed, %d survived, %d did not build\n", counts[killed], len(chosen), counts[survived], counts[unbuilt])
	if counts[killed] < len(chosen) {
		return errors.New("not every mutant was killed")
	}
	return nil
}

// pattern matches the row alone, and needs no more quotes in a shell.
func pattern(r row) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(r.String()), "'", ".") + "$"
}

type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "SURVIVED"
	unbuilt  outcome = "DID NOT BUILD"
	late     outcome = "TIMED OUT"
	unclear  outcome = "UNCLEAR" // the command failed, but not the test
)

// run runs the row's test with the changed file.
func (r row) run(ctx context.Context, root string) (became outcome, output string, cpu time.Duration) {
	name, text, err := r.apply(os.DirFS(root))
	if err != nil {
		return unclear, err.Error(), 0
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return unclear, err.Error(), 0
	}
	defer os.RemoveAll(dir)
	file, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, filepath.FromSlash(name)): file}})
	if err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return unclear, err.Error(), 0
	}
	// The row's own flags come later and win.
	args := append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=5m"}, strings.Fields(r.test)[2:]...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// A fresh seed could fail by itself: use the seed of every commit.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PENSTOCK_") })
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	all, err := cmd.CombinedOutput()
	if s := cmd.ProcessState; s != nil {
		cpu = s.UserTime() + s.SystemTime()
	}
	return r.judge(string(all), err != nil), string(all), cpu
}

var (
	failing = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	crashed = regexp.MustCompile(`(?m)^(panic|fatal error): `)
)

// judge derives the mutant's outcome from go test's output. The command runs one test, so a crash
// of the program counts as a failure of that test.
func (r row) judge(output string, failed bool) outcome {
	test, _ := r.testName()
	switch m := failing.FindStringSubmatch(output); {
	case !failed:
		return survived
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return unbuilt
	case strings.Contains(output, "panic: test timed out after"):
		if r.hangs {
			return killed
		}
		return late
	case m != nil && m[1] == test, crashed.MatchString(output):
		return killed
	}
	return unclear
}
