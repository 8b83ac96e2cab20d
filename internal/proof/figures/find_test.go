package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindChecks(t *testing.T) {
	file := func(constraint, name, call string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(constraint + "package a\n\nimport " + name + ` "example.com/m/internal/proof/figure"` +
			"\n\nfunc f() { " + call + " }\n")}
	}
	const call = "figure.Report(t, figure.Figure{})"
	fsys := fstest.MapFS{
		"b/b_test.go":          file("", "", call),
		"b/again_test.go":      file("", "", call),
		"b/sim_test.go":        file("//go:build sim\n\n", "", call),
		"b/race_test.go":       file("//go:build race && !sim\n\n", "", call),
		"b/linux_test.go":      file("//go:build unix || windows\n\n", "", call),
		"nested/go.mod":        {Data: []byte("module nested")},
		"nested/c/c_test.go":   file("", "fig", "fig.Report(t, x)"),
		"d/sizes_test.go":      file("", "", "figure.Size(1, 2, 3, 4)"),
		"d/other_test.go":      {Data: []byte("package d\n\nfunc f() { figure.Report(t) }\n")},
		"d/d.go":               file("", "", call),
		"e/e_sim_test.go":      {Data: []byte("//go:build sim\n\npackage e\n\nimport \"example.com/m/internal/proof/schedules\"\n\nfunc f() { schedules.Random(t, g) }\n")},
		"sim/x_test.go":        {Data: []byte("//go:build sim\n\npackage schedules_test\n\nimport \"example.com/m/internal/proof/schedules\"\n\nfunc f() { schedules.Random(t, g) }\n")},
		"d/testdata/x_test.go": file("", "", call),
	}
	sim := []string{"-tags", "sim", "-run", "^TestSim"}
	checks, err := findChecks(fsys)
	require.NoError(t, err)
	assert.Equal(t, []check{{"b", nil}, {"b", []string{"-race"}}, {"b", sim}, {"e", sim}, {"nested/c", nil}}, checks)

	chosen, err := choose(checks, []string{"./b/"})
	require.NoError(t, err)
	assert.Len(t, chosen, 3)
	_, err = choose(checks, []string{"./d"})
	assert.EqualError(t, err, "no test in ./d reports a figure")

	_, err = findChecks(fstest.MapFS{"a/a_test.go": file("//go:build never\n\n", "", call)})
	assert.ErrorContains(t, err, "a/a_test.go: it reports a figure under a build constraint that no entry of ways satisfies")
}
