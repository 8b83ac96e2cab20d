//go:build !sim && !race

package schedules_test

import (
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/proof/books"
	"github.com/penstock-go/penstock/proof/source"
)

func TestMain(m *testing.M) { books.Main(m) }

// TestSchedules runs every schedule test of the module, which needs another build (and
// no race detector: one goroutine runs at a time):
//
//	go test -tags sim -run ^TestSim ./stat ./node ...
func TestSchedules(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	args := []string{"test", "-count=1", "-tags", "sim", "-run", "^TestSim|^TestScheduler", "-timeout", "30m"}
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
	require.NoError(t, source.Each(os.DirFS(root), func(name string, text []byte) error {
		if strings.HasSuffix(name, "_sim_test.go") && strings.HasPrefix(string(text), "//go:build sim\n") {
			if p := "./" + path.Dir(name); len(packages) == 0 || packages[len(packages)-1] != p {
				packages = append(packages, p)
			}
		}
		return nil
	}))
	return packages
}
