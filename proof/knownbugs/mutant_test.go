package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseMutant(t *testing.T) {
	text := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	const (
		rows = "# known bug 3, 4"
		why  = "# It forgets."
		cmd  = "# GOARCH=386 go test -run '^(TestA|TestB)$' -tags sim ./stat"
		diff = "--- a/stat/a.go\n+++ b/stat/a.go"
	)
	m, err := parseMutant("03-forgets", text(rows, why, "#", "# And more.", cmd, diff, "# go test x"))
	require.NoError(t, err)
	assert.Equal(t, []int{3, 4}, m.rows)
	assert.Equal(t, "It forgets.  And more.", m.why)
	assert.Equal(t, []string{"GOARCH=386"}, m.env)
	assert.Equal(t, []string{"test", "-run", "^(TestA|TestB)$", "-tags", "sim", "./stat"}, m.args)
	assert.Equal(t, []string{"TestA", "TestB"}, m.tests())
	assert.Equal(t, []string{"stat"}, m.packages())
	assert.Equal(t, []string{"stat/a.go"}, m.changes)
	assert.Empty(t, m.attack)
	found, err := parseMutant("03-forgets", text(rows, why, cmd, "# attack storms", diff))
	require.NoError(t, err)
	assert.Equal(t, "storms", found.attack)
	assert.Equal(t, "It forgets.", found.why)
	assert.Equal(t, "forgets", m.short())
	assert.Equal(t, "GOARCH=386 go test -run '^(TestA|TestB)$' -tags sim ./stat", m.command.String())

	for _, c := range []struct{ name, text, want string }{
		{"forgets", text(rows, why, cmd, diff), "call the file NN-what-is-wrong.patch"},
		{"03-For_gets", text(rows, why, cmd, diff), "call the file NN-what-is-wrong.patch"},
		{"04-forgets", text(rows, why, cmd, diff), "the file name begins with 04, and the first row is 3"},
		{"03-forgets", text(why, cmd, diff), "no row"},
		{"03-forgets", text("# known bug 300", why, cmd, diff), "no row 300"},
		{"03-forgets", text(rows, cmd, diff), "what goes wrong"},
		{"03-forgets", text(rows, why, diff), "no command"},
		{"03-forgets", text(rows, why, cmd, cmd, diff), "two go test commands"},
		{"03-forgets", text(rows, why, "# go test -run TestA ./stat", diff), "in full"},
		{"03-forgets", text(rows, why, "# go test -run '^TestA' ./stat", diff), "in full"},
		{"03-forgets", text(rows, why, "# go test -run '^(TestA|TestB.*)$' ./stat", diff), "in full"},
		{"03-forgets", text(rows, why, "# go test ./stat", diff), "in full"},
		{"03-forgets", text(rows, why, cmd), "no diff"},
	} {
		_, err := parseMutant(c.name, c.text)
		assert.ErrorContains(t, err, c.want)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		output string
		failed bool
		want   verdict
		detail string
	}{
		{"ok  \tx\t0.1s\n", false, survived, ""},
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\tx\n", true, killed, "TestA"},
		{"--- FAIL: TestB (0.00s)\nFAIL\tx\n", true, partly, "TestA passes"},
		{"--- FAIL: TestB (0.00s)\npanic: oh\nFAIL\tx\n", true, killed, "panic"},
		{"panic: test timed out after 2m0s\n", true, killed, "test timed out"},
		{"panic: runtime error: index out of range\n", true, killed, "panic"},
		{"fatal error: all goroutines are asleep - deadlock!\n", true, killed, "fatal error"},
		{"# x\n./a.go:3:2: declared and not used: b\nFAIL\tx [build failed]\n", true, broken, "# x"},
		{"FAIL\tx [setup failed]\n", true, broken, "FAIL\tx [setup failed]"},
		{"no required module\n", true, unclear, "no required module"},
	} {
		v, detail := judge(c.output, c.failed, []string{"TestA"})
		assert.Equal(t, c.want, v, c.output)
		assert.Equal(t, c.detail, detail, c.output)
	}
}

// A whole round, in a module of one function: one patch that the test notices, and
// one of each other kind.
func TestTryEach(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a module four times")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	const code = "package a\n\nfunc two() int { return 2 }\n\nfunc one() int { return 1 }\n"
	file("go.mod", "module a\n\ngo 1.26\n")
	file("a.go", code)
	file("a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif two() != 2 {\n\t\tt.Fatal()\n\t}\n}\n")
	diff := func(name, from, to string) mutant {
		m := mutant{name: name, command: command{[]string{"GOWORK=off", "GOFLAGS="}, []string{"test", "-run", "^TestTwo$", "."}}}
		m.file = file(name+".patch", "# known bug 1\n--- a/a.go\n+++ b/a.go\n@@ -1,4 +1,4 @@\n package a\n \n-"+from+"\n+"+to+"\n \n")
		return m
	}
	const two = "func two() int { return 2 }"
	var out strings.Builder
	err := lab{dir, &out}.tryEach([]mutant{
		diff("01-three", two, "func two() int { return 3 }"),
		diff("01-same", two, "func two() int { return 1+1 }"),
		diff("01-stale", "func gone() int { return 2 }", ""),
		diff("01-unbuildable", two, "func two() int { return }"),
	})
	assert.EqualError(t, err, "3 patches were not noticed")
	for _, want := range []string{
		`  1/4  01-three +killed +\d+\.\d s  TestTwo\n`,
		`  2/4  01-same +SURVIVED +\d+\.\d s  \n +GOWORK=off GOFLAGS= go test -run '\^TestTwo\$' .\n`,
		`  3/4  01-stale +DOES NOT APPLY .*error: patch failed: a.go:1\n`,
		`  4/4  01-unbuildable +DOES NOT BUILD .*\n`,
		`\nkilled 1 of 4 \(25.0 %\) in \d+ s\n`,
	} {
		assert.Regexp(t, want, out.String())
	}
	left, err := os.ReadFile(filepath.Join(dir, "a.go"))
	require.NoError(t, err)
	assert.Equal(t, code, string(left), "the copy is as it was")

	nameless := diff("01-three", two, "func two() int { return 3 }")
	nameless.args = []string{"test", "-run", "^TestThree$", "."}
	assert.Error(t, lab{dir, &out}.tryEach([]mutant{nameless}))
	assert.Regexp(t, `01-three +FAILS WITHOUT IT .*no test is called so`, out.String())

	file("a.go", strings.ReplaceAll(code, "2", "4"))
	out.Reset()
	assert.Error(t, lab{dir, &out}.tryEach([]mutant{diff("01-three", two, two)}))
	assert.Regexp(t, `01-three +FAILS WITHOUT IT .*--- FAIL: TestTwo`, out.String())
}

// Every patch has its turn, and a share is what it says.
func TestShareOf(t *testing.T) {
	all := make([]mutant, 100)
	for i := range all {
		all[i].name = fmt.Sprint(i)
	}
	turns := make(map[string]bool)
	for commit := range 500 {
		share := shareOf(all, 24, fmt.Sprint("commit ", commit))
		assert.InDelta(t, 100./24, len(share), 1)
		assert.Equal(t, share, shareOf(all, 24, fmt.Sprint("commit ", commit)))
		for _, m := range share {
			turns[m.name] = true
		}
	}
	assert.Len(t, turns, len(all))
}
