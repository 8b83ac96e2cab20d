// Command pictures draws the pictures of the pages on rules, from an engine on a manual clock. They
// are readable on light and on dark pages.
//
//	go run ./internal/proof/pictures          show what would be written
//	go run ./internal/proof/pictures -write   write it: make pictures
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/internal/proof/source"
)

// pictures maps the files below docs/rules to their drawing functions.
var pictures = []struct {
	name string
	draw func() (string, error)
}{
	{"warmup.svg", warmUp},
	{"throttle.svg", throttle},
	{"breaker.svg", breakerStates},
	{"hotspot.svg", refill},
	{"shares.svg", shares},
	{"criticality.svg", criticality},
	{"upstream.svg", upstreamPause},
}

func main() {
	write := flag.Bool("write", false, "write the pictures into docs/rules")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	root, err := source.Root()
	if err != nil {
		return err
	}
	for _, p := range pictures {
		text, err := p.draw()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		file := filepath.Join(root, "docs", "rules", p.name)
		fmt.Printf("%s: %d bytes\n", file, len(text))
		if !write {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
