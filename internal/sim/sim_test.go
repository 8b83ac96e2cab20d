//go:build !sim && !race

package sim_test

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// TestSchedules runs every schedule test of the module, which needs another build (and
// no race detector: one goroutine runs at a time):
//
//	go test -tags sim -run ^TestSim ./stat ./node ...
func TestSchedules(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	args := []string{"test", "-tags", "sim", "-run", "^TestSim|^TestScheduler", "-timeout", "30m"}
	if testing.Short() {
		args = append(args, "-short")
	}
	packages := withSchedules(t, root)
	require.NotEmpty(t, packages)
	command := exec.CommandContext(t.Context(), "go", append(args, packages...)...)
	command.Dir = root
	var out strings.Builder
	command.Stdout, command.Stderr = &out, &out
	if testing.Verbose() {
		command.Stdout = io.MultiWriter(&out, os.Stdout)
	}
	err = command.Run()
	require.NoError(t, err, "go %s\n%s", strings.Join(command.Args[1:], " "), &out)
	for _, p := range packages {
		require.Contains(t, out.String(), "ok  \tgithub.com/penstock-go/penstock"+strings.TrimPrefix(p, "."), "%s", &out)
	}
	require.NotContains(t, out.String(), "no tests to run")
}

// withSchedules are the packages that have schedule tests. It reads every source
// file, so that the go command does not take this test for unchanged when one has
// changed.
func withSchedules(t *testing.T, root string) (packages []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == ".git" || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_sim_test.go") && strings.HasPrefix(string(source), "//go:build sim\n") {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if p := "./" + filepath.ToSlash(dir); len(packages) == 0 || packages[len(packages)-1] != p {
				packages = append(packages, p)
			}
		}
		return nil
	}))
	return packages
}
