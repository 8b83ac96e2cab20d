package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	trees "github.com/penstock-go/penstock/internal/proof/source"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestEveryRowFits(t *testing.T) {
	root, err := trees.Root()
	require.NoError(t, err)
	tree, seen := os.DirFS(root), make(map[string]bool)
	for _, r := range rows {
		_, _, err := r.apply(tree)
		assert.NoError(t, err, "%s: adapt the row to the code", r)
		assert.Regexp(t, `^[A-Z].*\.$`, r.invariant)
		assert.False(t, seen[r.invariant], r.invariant)
		seen[r.invariant] = true
		test, folder := r.testName()
		assert.True(t, hasTest(t, tree, folder, test), "%s: there is no such test: %s", r, r.test)
	}
}

func hasTest(t *testing.T, root fs.FS, folder, test string) bool {
	t.Helper()
	names, err := fs.Glob(root, path.Join(folder, "*_test.go"))
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func ` + test + `\(`)
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		if declared.Match(text) {
			return true
		}
	}
	return false
}

func TestApply(t *testing.T) {
	tree := fstest.MapFS{
		"a/b/one.go": {Data: []byte(`package b

// F returns x + 1.
func F(x int) int {
	if x > 0 /* always */ && // or nearly
		x < 9 {
		return x +
			1
	}
	return G(
		x,
		"a b",
	)
}

func (q *queue[W]) F() { q.n++; q.n++ }
func (q pair[K, V]) F() int { return 1 }
`)},
		"a/b/two.go":      {Data: []byte("package b\n\ntype queue[W any] struct{ n int }\nfunc init() { F(1) }\n")},
		"a/b/three.go":    {Data: []byte("package b\n\nfunc init() { F(2) }\n")},
		"a/b/one_test.go": {Data: []byte("package b\n\nfunc H() { F(2) }\n")},
	}
	for _, c := range []struct {
		declaration, old, changed string
		file, has, problem        string
	}{
		{"a/b.F", `if x>0&&x<9 { return x+1 }`, ``, "a/b/one.go", "{\n\t\n\treturn G(", ""},
		{"a/b.F", `return x + 1 }; return G(x, "a b")`, `return 0 }; return 2`, "a/b/one.go", "return 0 }; return 2\n}", ""},
		{"a/b.F", "\n return G\n", `return +F`, "a/b/one.go", "return +F(\n\t\tx,", ""},
		{"a/b.queue", `n int`, `n int8`, "a/b/two.go", "struct{ n int8 }", ""},
		{"a/b.pair.F", `1`, `2`, "a/b/one.go", "F() int { return 2 }", ""},
		{"a/b.queue.F", `{ q.n++; q.n++`, `{`, "a/b/one.go", "F() { }", ""},
		{"a/b.queue.F", `q.n++`, ``, "", "", "occurs 2 times"},
		{"a/b.F", `G(x, "ab")`, ``, "", "", "occurs 0 times"},
		{"a/b.F", `// F`, `1`, "", "", "old is empty"},
		{"a/b.F", `x < 9`, `x<9 // too`, "", "", "same as old"},
		{"a/b.F", `x < 9`, `x <`, "", "", "expected operand"},
		{"a/b.F", `"a`, ``, "", "", "old: string literal not terminated"},
		{"a/b.F", `x < 9`, `'`, "", "", "new: rune literal not terminated"},
		{"a/b.G", `x`, ``, "", "", "no such declaration"},
		{"a/b.H", `F`, ``, "", "", "no such declaration"},
		{"a/b.init", `F`, `G`, "", "", "a/b/three.go and a/b/two.go both"},
		{"F", `x`, ``, "", "", "not of the form"},
	} {
		file, text, err := row{declaration: c.declaration, old: c.old, new: c.changed}.apply(tree)
		if c.problem != "" {
			assert.ErrorContains(t, err, c.problem, c.declaration)
			continue
		}
		require.NoError(t, err, c.declaration)
		assert.Equal(t, c.file, file)
		assert.Contains(t, text, c.has)
	}
}

func TestJudge(t *testing.T) {
	r := row{test: "go test -tags sim -short -timeout 20s -run ^TestX$ ./a/b"}
	test, folder := r.testName()
	assert.Equal(t, []string{"TestX", "a/b"}, []string{test, folder})
	slow := r
	slow.hangs = true
	for _, c := range []struct {
		r      row
		output string
		failed bool
		want   outcome
	}{
		{r, "ok  \ta/b\t0.1s\n", false, survived},
		{r, "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\ta/b\t0.1s\n", true, killed},
		{r, "--- FAIL: TestXY (0.00s)\nFAIL\n", true, unclear},
		{r, "    --- FAIL: TestX/sub (0.00s)\n", true, unclear},
		{r, "panic: index out of range\n\ngoroutine 7 [running]:\nFAIL\ta/b\t0.1s\n", true, killed},
		{r, "fatal error: all goroutines are asleep - deadlock!\nFAIL\ta/b\t0.1s\n", true, killed},
		{r, "# a/b\nb.go:1:1: declared and not used: x\nFAIL\ta/b [build failed]\n", true, unbuilt},
		{r, "FAIL\ta/b [setup failed]\n", true, unbuilt},
		{r, "panic: test timed out after 20s\n\trunning tests:\n\t\tTestX (20s)\n", true, late},
		{slow, "panic: test timed out after 20s\n\trunning tests:\n\t\tTestX (20s)\n", true, killed},
		{r, "PASS\nleft goroutines\nFAIL\ta/b\t0.1s\n", true, unclear},
		{r, "", true, unclear},
	} {
		assert.Equal(t, c.want, c.r.judge(c.output, c.failed), c.output)
	}
	for _, other := range []string{
		"go test -run TestX ./a", "go test -run ^TestX$ ./a ./b", "go vet ./a", "go test -run ^(TestX|TestY)$ ./a", "go test -run ^TestX$",
	} {
		test, _ := row{test: other}.testName()
		assert.Empty(t, test, other)
	}
}
