package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is the program apart from its process. It returns the exit status.
func command(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	flags.SetOutput(errs)
	var (
		lasts  = flags.Duration("for", time.Minute, "how long to run")
		rounds = flags.Int("rounds", 0, "run this many rounds of each attack instead, however long they take")
		seed   = flags.Uint64("seed", seedOf(os.Getenv("PENSTOCK_SEED")), "seed of all randomness; 1, or the value of PENSTOCK_SEED")
		only   = flags.String("only", "", "the attacks to run, as in `order,queues`; default all")
		round  = flags.Int("round", 0, "run this round alone, as a failure report suggests, and print all of its steps")
		list   = flags.Bool("list", false, "print each attack and its promise")
	)
	if err := flags.Parse(args); err != nil {
		return 2
	}
	chosen, err := choose(*only)
	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: there are only flags", flags.Arg(0))
	case *lasts <= 0 || *round < 0 || *rounds < 0:
		err = fmt.Errorf("-for, -rounds and -round must be positive")
	}
	if err != nil {
		fmt.Fprintln(errs, "attack:", err)
		return 2
	}
	if *list {
		for _, a := range chosen {
			fmt.Fprintf(out, "%-10s %s\n", a.name, a.promise)
		}
		return 0
	}
	c := campaign{attacks: chosen, seed: *seed, lasts: *lasts, rounds: *rounds, round: *round, screen: screen(errs)}
	found := c.run()
	c.report(out, found)
	if found != nil {
		return 1
	}
	return 0
}

func seedOf(text string) uint64 {
	if seed, err := strconv.ParseUint(text, 0, 64); err == nil {
		return seed
	}
	return 1
}

// choose returns the attacks with the given names, in the order of the list.
func choose(names string) ([]attack, error) {
	if names == "" {
		return attacks, nil
	}
	wanted := make(map[string]bool)
	for name := range strings.SplitSeq(names, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []attack
	for _, a := range attacks {
		if wanted[a.name] {
			chosen = append(chosen, a)
			delete(wanted, a.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("-only: no attack is named %q; -list names them", name)
	}
	return chosen, nil
}

// screen returns the terminal for progress, or nil.
func screen(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
