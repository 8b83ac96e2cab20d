package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/proof/figure"
)

// A whole round, in two modules of one package each that write what figure.Report
// writes. The second is not in the workspace.
func TestRunChecks(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds four test binaries")
	}
	root := t.TempDir()
	file := func(name, text string) {
		name = filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	const tests = `package a

import (
	"os"
	"testing"
)

func write(t *testing.T, line string) {
	if err := os.WriteFile(os.Getenv("PENSTOCK_FIGURES"), []byte(line+"\\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReport(t *testing.T) { write(t, "{\"Name\":\""+os.Getenv("FIGURES")+"\",\"Value\":3,\"AtMost\":2}") }

func TestFail(t *testing.T) {
	TestReport(t)
	t.Error("it fails")
}

func TestForget(t *testing.T) {}

func TestScribble(t *testing.T) { write(t, "{\"Naem\":1}") }
`
	file("go.work", "go 1.26\n\nuse .\n")
	file("go.mod", "module example.com/a\n\ngo 1.26\n")
	file("a/a_test.go", tests)
	file("apart/go.mod", "module example.com/apart\n\ngo 1.26\n")
	file("apart/b/b_test.go", tests)

	one := []figure.Figure{{Name: "long", Value: 3, AtMost: 2}}
	for _, c := range []struct {
		dir, test string
		env       []string
		figures   []figure.Figure
		failed    []string
	}{
		{"a", "TestReport", nil, one, nil}, // to miss a target is the table's affair
		{"apart/b", "TestReport", []string{"GOWORK=off"}, one, nil},
		{"a", "TestFail", nil, one, []string{"./a -run TestFail failed"}},
		{"a", "TestForget", nil, nil, []string{"./a -run TestForget reported no figure"}},
		{"a", "TestScribble", nil, nil, []string{"./a -run TestScribble failed"}},
		{"a", "TestNowhere", nil, nil, []string{"./a -run TestNowhere reported no figure"}},
	} {
		ch := check{c.dir, []string{"-run", c.test}}
		results, failed := runChecks(root, "long", []check{ch})
		assert.Equal(t, []result{{ch, c.env, c.figures}}, results)
		assert.Equal(t, c.failed, failed)
	}
}
