package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/proof/tables"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

var sample = table{
	machine: tables.Machine{
		GoVersion: "go1.26.8", Platform: "linux/amd64", Cores: 2, MaxProcs: 2,
		Processor: "A Processor", Commit: "6545609f0242 with changes", Day: "2026-11-21",
	},
	size: "figures",
	results: []result{
		{check: check{dir: "flow"}, figures: []figure.Figure{
			{Name: "spurious refusals at saturation", Value: 0.0125, AtMost: 0.1, Unit: "%", N: 1_234_567, Seed: 18446744073709551615, Test: "TestStarve/a"},
			{Name: "admitted of what the limit is", Value: 99.5, AtLeast: 99.9, Unit: "%", N: 1000, Test: "TestStarve/b"},
			{Name: "a rate below zero", Value: -1234.5, N: 3, Test: "TestOther"},
		}},
		{check: check{"proof/model/engine", []string{"-race"}}, env: []string{"GOWORK=off"}, figures: []figure.Figure{
			{Name: "differences", Value: 0, N: 2_000_000, Seed: 7, Test: "TestTwin"},
		}},
		{check: check{dir: "rules"}},
		{check: check{"stat", []string{"-tags", "sim", "-run", "^TestSim"}}, figures: []figure.Figure{
			{Name: "over-admissions, window, all schedules of four callers across a bucket turn", Value: 0, N: 100_000_000, Seed: 1, Test: "TestSimWindow"},
			{Name: "semaphore", Value: 3, N: 1_000_000, Seed: 1, Test: "TestSimSemaphore"},
		}},
	},
}

func TestTable(t *testing.T) {
	got := sample.String()
	golden(t, "table.txt", got)
	for line := range strings.Lines(got) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line)-1, width, line)
	}
	assert.Equal(t, 6, sample.figures())
	assert.Equal(t, 2, sample.missed())
}

const (
	top   = "<!-- summary: begin, written by go run ./proof/figures -write -->\n<!-- summary: end -->\n"
	begin = "<!-- figures: begin, written by go run ./proof/figures -write -->\n"
	end   = "<!-- figures: end -->\n"
)

func TestKeep(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) { require.NoError(t, os.WriteFile(page, []byte(text), 0o600)) }
	read := func() string {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		return string(text)
	}
	write("before\n" + top + begin + "old\n" + end + "after\n")
	require.NoError(t, keep(page, sample))
	golden(t, "page.md", read())

	once := read()
	require.NoError(t, keep(page, sample))
	assert.Equal(t, once, read(), "again, the same")

	write("before\n" + begin + "after\n")
	assert.ErrorContains(t, keep(page, sample), "must stand around the table")
	assert.Equal(t, "before\n"+begin+"after\n", read())
}

func TestWrap(t *testing.T) {
	assert.Equal(t, []string{"one two", "three", "averylongword", "four"}, wrap("one two three averylongword four", 8))
	assert.Equal(t, []string{""}, wrap("", 8))
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", -100: "-100", -1000: "-1,000", 1234567: "1,234,567", 0.0001234567: "0.0001235", 1e300: "1e+300"} {
		assert.Equal(t, want, number(v))
	}
}
