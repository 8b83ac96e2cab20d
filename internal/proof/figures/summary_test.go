package main

import (
	"flag"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

const root = "../../../"

var update = flag.Bool("update", false, "write the summary of the page")

// The page on reliability has the current summary of the table. -update writes it.
func TestSummaryIsOfTheTable(t *testing.T) {
	text, err := tables.Kept(root+tableFile, "figures")
	require.NoError(t, err)
	kept := table{results: []result{rows(text)}}
	require.Greater(t, kept.figures(), 100)
	if *update {
		require.NoError(t, keepSummary(root, kept))
	}
	shown, err := tables.Kept(root+summaryFile, "summary")
	require.NoError(t, err)
	assert.Equal(t, "\n"+summary(kept)+"\n", shown)
	assert.Len(t, strings.Split(strings.TrimSpace(shown), "\n"), 2+len(claims)+1, "the summary needs a row for each claim, and one for the remaining figures")
}

// rows reads the figures back from a table in the page: names, values, targets and trials.
func rows(text string) (r result) {
	row := regexp.MustCompile(`^[ !] (.*?) +(-?[\d.,e+-]+)(\S*) +([≤≥]) ([\d.,e+-]+)\S* +([\d,]+)`)
	seed := regexp.MustCompile(` {2,}\d+$`)
	plain := func(s string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		return v
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		m := row.FindStringSubmatch(line)
		switch {
		case m != nil:
			f := figure.Figure{Name: m[1], Value: plain(m[2]), Unit: m[3], N: int64(plain(m[6]))}
			if f.AtMost = plain(m[5]); m[4] == "≥" {
				f.AtMost, f.AtLeast = 0, f.AtMost
			}
			r.figures = append(r.figures, f)
		case strings.HasPrefix(line, "    ") && len(r.figures) > 0:
			last := &r.figures[len(r.figures)-1]
			last.Name = strings.TrimSpace(last.Name + " " + strings.TrimSpace(seed.ReplaceAllString(line, "")))
		}
	}
	return r
}
