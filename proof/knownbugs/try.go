package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a patch.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	partly   verdict = "NOT BY ALL" // of the tests that the patch names
	stale    verdict = "DOES NOT APPLY"
	broken   verdict = "DOES NOT BUILD"
	unclear  verdict = "NO TEST FAILED"   // and yet the command did
	unsound  verdict = "FAILS WITHOUT IT" // or no test is called so
)

// tryAll tries the patches whose names match, in a copy of the tree: with their tests, or
// if by is set with the attack that finds them, where there is one.
func tryAll(root, only string, share int, by attacker) error {
	choose, err := pattern(only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "known-bugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := copyTree(root, scratch); err != nil {
		return err
	}
	// The copy's own, so that it doesn't matter what happens to the tree meanwhile.
	all, err := readMutants(filepath.Join(scratch, mutantsDir))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !choose.MatchString(m.name) })
	if share > 1 {
		commit, err := commitOf(root)
		if err != nil {
			return err
		}
		all = shareOf(all, share, commit)
		fmt.Printf("the share of commit %.12s: %d patches\n", commit, len(all))
	}
	l := lab{scratch, os.Stdout}
	if by != nil {
		all = slices.DeleteFunc(all, func(m mutant) bool { return m.attack == "" })
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("no patch matches %q", only)
	case by != nil:
		return l.attackEach(all, by)
	}
	return l.tryEach(all)
}

// shareOf returns every n-th patch; with which it begins is the commit's to say, so that
// each has its turn.
func shareOf(all []mutant, n int, commit string) []mutant {
	h := fnv.New32a()
	_, _ = io.WriteString(h, commit)
	var share []mutant
	for i := int(h.Sum32() % uint32(n)); i < len(all); i += n {
		share = append(share, all[i])
	}
	return share
}

// commitOf is the commit that is checked out.
func commitOf(root string) (string, error) {
	git := exec.Command("git", "rev-parse", "HEAD")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("-share needs to know the commit: git rev-parse HEAD: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lab is a copy of the tree that may be spoilt.
type lab struct {
	dir string
	out io.Writer
}

func (l lab) tryEach(mutants []mutant) error {
	start := time.Now()
	counts := make(map[verdict]int)
	sound := make(map[string]string) // what is wrong with a command without a patch
	for i, m := range mutants {
		began := time.Now()
		key := m.command.String()
		if _, done := sound[key]; !done {
			sound[key] = l.check(m.command)
			began = time.Now()
		}
		v, detail := unsound, sound[key]
		if detail == "" {
			var err error
			if v, detail, err = l.try(m); err != nil {
				return err
			}
		}
		counts[v]++
		fmt.Fprintf(l.out, "%3d/%d  %-36s %-8s %5.1f s  %s\n", i+1, len(mutants), m.name, v, time.Since(began).Seconds(), detail)
		if v != killed {
			fmt.Fprintf(l.out, "        %s\n", key)
		}
	}
	fmt.Fprintf(l.out, "killed %d of %d (%.1f %%) in %.0f s\n", counts[killed], len(mutants),
		100*float64(counts[killed])/float64(len(mutants)), time.Since(start).Seconds())
	if counts[killed] < len(mutants) {
		return fmt.Errorf("%d patches were not noticed", len(mutants)-counts[killed])
	}
	return nil
}

// check runs a command without a patch and says what is wrong with it, if anything.
func (l lab) check(c command) (problem string) {
	output, err := l.goTest(c)
	switch {
	case err != nil:
		return tail(output)
	case strings.Contains(output, "no tests to run"):
		return "no test is called so in one of the packages"
	}
	return ""
}

// try puts a mistake in, runs its tests, and takes it out again.
func (l lab) try(m mutant) (v verdict, detail string, err error) {
	if output, err := l.apply(m.file); err != nil {
		return stale, firstLine(output), nil
	}
	defer func() {
		if output, undo := l.apply(m.file, "--reverse"); undo != nil {
			err = errors.Join(err, fmt.Errorf("taking %s out: %w\n%s", m.name, undo, output))
		}
	}()
	output, failed := l.goTest(m.command)
	v, detail = judge(output, failed != nil, m.tests())
	return v, detail, nil
}

var failing = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// judge reads what go test printed. Only a test that fails, panics or hangs has noticed
// anything. Each of the tests must, but those that a panic or the like has kept from running.
func judge(output string, failed bool, tests []string) (verdict, string) {
	switch {
	case !failed:
		return survived, ""
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return broken, firstLine(output)
	}
	var noticed []string
	for _, m := range failing.FindAllStringSubmatch(output, -1) {
		noticed = append(noticed, m[1])
	}
	left := slices.DeleteFunc(slices.Clone(tests), func(name string) bool { return slices.Contains(noticed, name) })
	if len(left) == 0 {
		return killed, strings.Join(tests, ", ")
	}
	for _, sign := range []string{"test timed out", "DATA RACE", "panic", "fatal error"} {
		if strings.Contains(output, sign) {
			return killed, sign
		}
	}
	if len(noticed) > 0 {
		return partly, strings.Join(left, ", ") + " passes"
	}
	return unclear, firstLine(output)
}

func (l lab) goTest(c command) (string, error) {
	// What is tested differs each time, and vet has nothing to say of a mistake.
	args := append([]string{c.args[0], "-count=1", "-vet=off", "-timeout=120s"}, c.args[1:]...)
	return l.output(c.env, "go", args...)
}

// apply applies a patch to the copy, as git does outside a repository.
func (l lab) apply(file string, flags ...string) (string, error) {
	return gitApply(l.dir, file, flags...)
}

func gitApply(dir, file string, flags ...string) (string, error) {
	args := append([]string{"apply"}, flags...)
	return lab{dir: dir}.output([]string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}, "git", append(args, file)...)
}

func (l lab) output(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// copyTree copies what git tracks, and what it doesn't yet but wouldn't ignore.
func copyTree(from, to string) error {
	list, err := lab{dir: from}.output(nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return fmt.Errorf("git ls-files: %w\n%s", err, list)
	}
	for name := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not yet so in the index
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name), info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, perm os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, perm)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// tail is the end of a long text.
func tail(text string) string {
	const most = 2000
	if len(text) > most {
		text = "... " + text[len(text)-most:]
	}
	return text
}
