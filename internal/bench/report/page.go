package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

// Page is the main function of a command that prints a table and, with -write, keeps it in the place of
// that name on a page of the project.
func Page(page, name string, table func() string) {
	write := flag.Bool("write", false, "keep the table in "+page)
	flag.Parse()
	text := table()
	fmt.Print(text)
	if !*write {
		return
	}
	root, err := source.Root()
	if err == nil {
		err = tables.Keep(filepath.Join(root, filepath.FromSlash(page)), name, Framed(text))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Framed returns a table as it stands on a page.
func Framed(table string) string { return "\n```text\n" + table + "```\n\n" }
