//go:build !sim && !race

package schedules_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/source"
)

func TestMain(m *testing.M) { books.Main(m) }

// CI finds the tests of schedules by the names of their files and the first line:
//
//	go test -tags sim -short -run ^TestSim ./stat ./node ...
func TestSchedulesAreFound(t *testing.T) {
	found := 0
	require.NoError(t, source.Each(os.DirFS("../../.."), func(name string, text []byte) error {
		if !strings.HasSuffix(name, "_test.go") || !bytes.Contains(text, []byte("\nfunc TestSim")) || !bytes.Contains(text, []byte(`/proof/schedules"`)) {
			return nil
		}
		found++
		if !strings.HasSuffix(name, "_sim_test.go") || !bytes.HasPrefix(text, []byte("//go:build sim\n")) {
			t.Errorf("%s: tests of schedules belong in a file named ..._sim_test.go that begins with //go:build sim", name)
		}
		return nil
	}))
	require.NotZero(t, found)
}
