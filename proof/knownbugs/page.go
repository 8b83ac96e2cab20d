package main

import (
	"fmt"
	"strings"
)

const pageFile = "docs/known-bugs.md"

const intro = `<!-- Written by go run ./proof/knownbugs -write. Change proof/knownbugs instead. -->

# Known bugs

Systems of the same kind as Penstock have had bugs that were told in public:
limits that let too much through, clocks that broke them, permits that were
lost. Each of them must be impossible here, and a test must show it. So must those
that Penstock had itself: they are the last table.

A test that shows it names the row in a comment, ` + "`// known bug 23`" + `. The tables
below are made from those comments. A row that could have a test and has none
fails CI. Some rows need a part that is not built yet; they say so.

    go run ./proof/knownbugs          what has no test, what waits
    go run ./proof/knownbugs -all     every row, with file and line of its tests
    make known-bugs                       do the tests notice?

The last one is the check of the checks. Below ` + "`" + mutantsDir + "`" + ` lie
patches. Each puts the mistake of a row into Penstock's own code, and says which
tests must fail then. ` + "`make known-bugs`" + ` tries each in a copy of the tree; all must
be noticed. A patch that no longer fits the code fails the ordinary tests, so
that it is mended together with the change.

A row says what went wrong in short, and where. That a system is named here says
nothing about the rest of it: these are the ones that publish their mistakes.
`

// page is the text of docs/known-bugs.md.
func page(tests found, patches []mutant) string {
	var b strings.Builder
	b.WriteString(intro)
	byRow := patchesByRow(patches)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| | What went wrong | Where | Tests here | Patches |\n|---|---|---|---|---|\n", s.title)
		for _, r := range s.rows {
			owners := testsByPackage(tests.owners[r.number])
			switch {
			case owners == "" && r.waits != "":
				owners = "waits for: " + r.waits
			case owners == "":
				owners = "**none**"
			}
			var names []string
			for _, m := range byRow[r.number] {
				names = append(names, fmt.Sprintf("[%s](../%s/%s.patch)", m.short(), mutantsDir, m.name))
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", r.number, r.wrong, r.where, owners, strings.Join(names, ", "))
		}
	}
	return b.String()
}
