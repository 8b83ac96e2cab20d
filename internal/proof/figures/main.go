package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

func main() {
	write := flag.Bool("write", false, "keep the table in "+tableFile+", and its summary in "+summaryFile)
	flag.Parse()
	if err := run(*write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(write bool, only []string) error {
	if write && len(only) > 0 {
		return errors.New("-write keeps the whole table: name no package")
	}
	size := os.Getenv(figure.SizeEnv)
	if size == "" {
		size = "figures"
	}
	if _, err := time.ParseDuration(size); err != nil && size != "figures" && size != "long" {
		return fmt.Errorf("%s=%s: use figures, long or a time such as 20m", figure.SizeEnv, size)
	}
	root, err := source.Root()
	if err != nil {
		return err
	}
	checks, err := findChecks(os.DirFS(root))
	if err != nil {
		return err
	}
	checks, err = choose(checks, only)
	if err != nil {
		return err
	}
	start := time.Now()
	results, failed := runChecks(root, size, checks)
	t := table{machine: tables.ThisMachine(), size: size, results: results}
	fmt.Print(t)
	fmt.Printf("\n%d figures in %.0f s\n", t.figures(), time.Since(start).Seconds())
	if missed := t.missed(); missed > 0 {
		failed = append(failed, fmt.Sprintf("%d figures miss their target", missed))
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	if write {
		return keep(root, t)
	}
	return nil
}

func choose(checks []check, only []string) (chosen []check, err error) {
	if len(only) == 0 {
		return checks, nil
	}
	for _, name := range only {
		found := false
		for _, c := range checks {
			if c.dir == filepath.ToSlash(filepath.Clean(name)) {
				chosen = append(chosen, c)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no test in %s reports a figure", name)
		}
	}
	return chosen, nil
}
