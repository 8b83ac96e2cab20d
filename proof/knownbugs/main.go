package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/penstock-go/penstock/proof/source"
)

func main() {
	all := flag.Bool("all", false, "print every row with its tests")
	write := flag.Bool("write", false, "write docs/known-bugs.md")
	try := flag.Bool("mutants", false, "put the mistakes into a copy of the tree, and see whether the tests notice")
	attack := flag.Bool("attack", false, "put in those that an attack finds, and see whether it does, and after how many rounds")
	run := flag.String("run", "", "with -mutants or -attack: try only patches whose file name matches this `regexp`")
	share := flag.Int("share", 1, "with -mutants: try one in so many, others at each commit")
	flag.Parse()
	err := func() error {
		root, err := source.Root()
		if err != nil {
			return err
		}
		switch {
		case *try:
			return tryAll(root, *run, *share, nil)
		case *attack:
			return tryAll(root, *run, 1, byAttack)
		}
		return show(root, *all, *write)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "known bugs:", err)
		os.Exit(1)
	}
}

func show(root string, all, write bool) error {
	tests, err := scan(os.DirFS(root))
	if err != nil {
		return err
	}
	patches, err := readMutants(filepath.Join(root, mutantsDir))
	if err != nil {
		return err
	}
	if write {
		if err := os.WriteFile(filepath.Join(root, pageFile), []byte(page(tests, patches)), 0o644); err != nil {
			return err
		}
	}
	if all {
		fmt.Print(everything(tests, patches))
	}
	fmt.Print(summary(tests, patches))
	switch missing := len(without(tests)); {
	case len(tests.problems) > 0:
		return fmt.Errorf("%d comments name rows and count for no test", len(tests.problems))
	case missing > 0:
		return fmt.Errorf("%d rows have no test, and could have one", missing)
	}
	return nil
}

func pattern(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	return re, nil
}
