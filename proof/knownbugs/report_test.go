package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRowsAreNumbered(t *testing.T) {
	rows := allRows()
	assert.GreaterOrEqual(t, len(rows), 109)
	for i, r := range rows {
		assert.Equal(t, i+1, r.number)
		assert.NotEmpty(t, r.where, "row %d", r.number)
		assert.NotEmpty(t, r.wrong, "row %d", r.number)
		assert.NotContains(t, r.where+r.wrong, "|", "row %d", r.number)
		assert.LessOrEqual(t, len(r.wrong), width-6, "row %d", r.number)
	}
}

// ownAll is a tree in which every row has a test but those that wait.
func ownAll() found {
	tests := found{owners: make(map[int][]owner)}
	for _, r := range allRows() {
		if r.waits == "" {
			tests.owners[r.number] = []owner{{"stat/a_test.go", 3, "TestA"}}
		}
	}
	return tests
}

func TestSummary(t *testing.T) {
	tests := ownAll()
	assert.Empty(t, without(tests))

	delete(tests.owners, 23)
	delete(tests.owners, 107)
	tests.problems = []string{"a_test.go:1: stray"}
	patches := []mutant{{name: "23-x", rows: []int{23, 27}}, {name: "23-y", rows: []int{23}}}
	rows := len(allRows())
	assert.Equal(t, fmt.Sprintf(`a_test.go:1: stray
Rows without a test:
   23  a step back wraps an unsigned age: everything passes
  107  beyond the cap on contexts nothing is protected
Rows that wait for a part that isn't built:
  cluster          28
%d rows: %d with a test, 2 without, 1 waiting. 2 patches, of 2 rows.
`, rows, rows-3), summary(tests, patches))

	for line := range strings.Lines(everything(tests, patches)) {
		assert.LessOrEqual(t, len(line)-1, width, line)
	}
	all := everything(tests, patches)
	assert.Contains(t, all, "  23  a step back wraps an unsigned age: everything passes\n      NO TEST\n      patch 23-x\n      patch 23-y\n")
	assert.Contains(t, all, "  24  after a step back a throttle refuses until time catches up\n      stat/a_test.go:3 TestA\n")
	assert.Contains(t, all, "  28  requests that overtake each other set shared state back\n      waits for: cluster\n")
}

func TestPage(t *testing.T) {
	tests := ownAll()
	delete(tests.owners, 23)
	tests.owners[24] = []owner{{"stat/b_test.go", 3, "TestB"}, {"stat/c_test.go", 1, "TestA"}, {"flow/a_test.go", 9, "TestC"}, {"flow/b_test.go", 9, "TestC"}}
	got := page(tests, []mutant{{name: "23-step-back", rows: []int{23}}})
	for _, line := range []string{
		"| 23 | a step back wraps an unsigned age: everything passes | sentinel-golang | **none** | [step-back](../proof/knownbugs/mutants/23-step-back.patch) |\n",
		"| 24 | after a step back a throttle refuses until time catches up | sentinel-golang | `flow` TestC; `stat` TestA, TestB |  |\n",
		"| 28 | requests that overtake each other set shared state back | go-zero | waits for: cluster |  |\n",
	} {
		assert.Contains(t, got, line)
	}
}

func TestRanges(t *testing.T) {
	assert.Equal(t, "none", ranges(nil))
	assert.Equal(t, "1, 2, 4-6, 9", ranges([]int{9, 1, 2, 4, 5, 6}))
}
