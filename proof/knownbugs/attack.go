package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// attacker makes an attack in a copy of the tree, and returns what it printed.
type attacker func(l lab, name string, seed int) (output string, failed bool)

// attackSeeds is how often each patch is attacked. After how many rounds that finds it is
// a matter of chance.
const attackSeeds = 3

// byAttack builds the command of package proof/attack and has it attack for a minute
// at most.
func byAttack(l lab, name string, seed int) (output string, failed bool) {
	program := filepath.Join(l.dir, ".attack")
	defer func() { _ = os.Remove(program) }()
	if output, err := l.output(nil, "go", "build", "-o", program, "./proof/attack"); err != nil {
		return output + "\n[build failed]", true
	}
	output, err := l.output(nil, program, "-only", name, "-for", "1m", "-seed", fmt.Sprint(seed))
	return output, err != nil
}

// attackEach puts each mistake in, and has the attack look for it that is said to find it.
func (l lab) attackEach(mutants []mutant, by attacker) error {
	start, found := time.Now(), 0
	for i, m := range mutants {
		began := time.Now()
		v, rounds, err := l.attacked(m, by)
		if err != nil {
			return err
		}
		if v == killed {
			found++
		}
		fmt.Fprintf(l.out, "%3d/%d  %-40s %-9s %-8s %5.1f s  after rounds %s\n", i+1, len(mutants), m.name, m.attack, v,
			time.Since(began).Seconds(), strings.Join(rounds, ", "))
	}
	fmt.Fprintf(l.out, "found %d of %d in %.0f s\n", found, len(mutants), time.Since(start).Seconds())
	if found < len(mutants) {
		return fmt.Errorf("%d patches were not found by their attacks", len(mutants)-found)
	}
	return nil
}

// attacked attacks a copy with a mistake in it, once with each seed. It must be found each
// time, in the round that is told.
func (l lab) attacked(m mutant, by attacker) (v verdict, rounds []string, err error) {
	if output, err := l.apply(m.file); err != nil {
		return stale, []string{firstLine(output)}, nil
	}
	defer func() {
		if output, undo := l.apply(m.file, "--reverse"); undo != nil && err == nil {
			err = fmt.Errorf("taking %s out: %w\n%s", m.name, undo, output)
		}
	}()
	for seed := 1; seed <= attackSeeds; seed++ {
		output, failed := by(l, m.attack, seed)
		switch {
		case strings.Contains(output, "[build failed]"):
			return broken, []string{firstLine(output)}, nil
		case !failed:
			return survived, append(rounds, "-"), nil
		}
		match := brokenIn.FindStringSubmatch(output)
		if match == nil {
			return unclear, []string{firstLine(output)}, nil
		}
		rounds = append(rounds, match[1])
	}
	return killed, rounds, nil
}

// brokenIn is how an attack says in which round a promise was broken.
var brokenIn = regexp.MustCompile(`(?m)^BROKEN: [a-z]+, in round (\d+):`)
