package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/bench/report"
	"github.com/penstock-go/penstock/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestProcessors(t *testing.T) {
	for all, want := range map[int][]int{1: {1}, 2: {1, 2}, 3: {1, 2}, 12: {1, 2, 4, 8}, 16: {1, 2, 4, 8, 16}, 96: {1, 2, 4, 8, 16}} {
		assert.Equal(t, want, processors(all), "%d", all)
	}
}

// More processors than there are work too, and their columns fit.
func TestTable(t *testing.T) {
	text := table(smoke, processors(16))
	for _, r := range rows {
		assert.Contains(t, text, "\n  "+r.name+" ")
	}
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), report.Width, line)
	}
}
