package pages_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const columns = 80

// longer matches the lines of output that may be longer, since cutting them would lose their end.
var longer = map[string]*regexp.Regexp{
	"a place in a file and what is there: one line each, as editors and GitHub read them": regexp.MustCompile(`^(\S+:\d+(:\d+)?: |\S+\.go: |::error )`),
	"what a learned limit is, a line of the tree":                                         regexp.MustCompile(`^adaptive rule `),
	"the table of make cluster-sim":                                                       regexp.MustCompile(`^(members +limit|\d+ +\d+/s) `),
	"a record of the log: one line each, as collectors read them":                         regexp.MustCompile(`^(time=\S+ )?level=[A-Z]+ `),
	"a command, to be copied":                                                             regexp.MustCompile(`^(\$ |FIGURES=|go |penstock |curl |cp |\(cd |ACL |/api/)`),
}

// Output on pages fits a terminal of 80 columns, and so does what the command prints: command.md
// has its transcripts, and a test that plays them.
func TestOutputShownFits(t *testing.T) {
	t.Chdir(docs)
	lines := 0
	for _, page := range pagesWithCommands(t) {
		for _, b := range blocks(t, page) {
			if kind, _, _ := strings.Cut(b.info, " "); kind != "" && kind != "text" && kind != "console" {
				continue // code
			}
			for line := range strings.Lines(b.text) {
				lines++
				fits(t, page, strings.TrimRight(line, "\n"))
			}
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for line := range strings.Lines(fence.ReplaceAllString(string(text), "")) {
			if strings.HasPrefix(line, "    ") {
				lines++
				fits(t, page, strings.TrimRight(line, "\n"))
			}
		}
	}
	assert.Greater(t, lines, 1000, "the test found too few")
}

func fits(t *testing.T, page, line string) {
	t.Helper()
	width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "        "))
	if width <= columns {
		return
	}
	for _, form := range longer {
		if form.MatchString(strings.TrimSpace(line)) {
			return
		}
	}
	t.Errorf("%s: %d columns: %s", page, width, line)
}
