package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/proof/source"
)

func theTree(t *testing.T) (root string, tests found, patches []mutant) {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	tests, err = scan(os.DirFS(root))
	require.NoError(t, err)
	require.NotEmpty(t, tests.owners, "this is not the module's tree")
	patches, err = readMutants(filepath.Join(root, mutantsDir))
	require.NoError(t, err)
	return root, tests, patches
}

func TestEveryRowHasATest(t *testing.T) {
	_, tests, _ := theTree(t)
	assert.Empty(t, tests.problems)
	for _, r := range without(tests) {
		t.Errorf("row %d has no test: %s", r.number, r.wrong)
	}
}

func TestPageIsCurrent(t *testing.T) {
	root, tests, patches := theTree(t)
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	require.NoError(t, err)
	if string(text) != page(tests, patches) {
		t.Errorf("%s is not what the tests say: go run ./proof/knownbugs -write", pageFile)
	}
}

// A patch that no longer fits the code shows here, not when it is next tried.
func TestEveryPatchApplies(t *testing.T) {
	root, _, patches := theTree(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here: whether the patches apply was not looked at")
	}
	for _, m := range patches {
		for _, file := range m.changes {
			// A cached result of this test knows of the files that it read itself.
			_, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err, m.name)
		}
		output, err := gitApply(root, m.file, "--check")
		assert.NoError(t, err, "%s: make it anew from the present code\n%s", m.name, output)
	}
}

func TestEveryPatchIsSound(t *testing.T) {
	_, tests, patches := theTree(t)
	assert.GreaterOrEqual(t, len(patchesByRow(patches)), 20, "rows with a patch")
	for _, m := range patches {
		for _, n := range m.rows {
			assert.NotEmpty(t, tests.owners[n], "%s: row %d has no test that could notice it", m.name, n)
		}
		assert.NotEmpty(t, m.packages(), "%s: name the packages, as ./stat", m.name)
		for _, name := range m.tests() {
			assert.True(t, slices.ContainsFunc(m.packages(), func(dir string) bool { return tests.tests[dir+" "+name] }),
				"%s: there is no %s in %v", m.name, name, m.packages())
		}
		for _, file := range m.changes {
			assert.NotRegexp(t, "_test.go$", file, m.name)
		}
	}
}
