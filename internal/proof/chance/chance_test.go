package chance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestSeed(t *testing.T) {
	assert.Equal(t, uint64(1), seedOf(""))
	assert.Equal(t, uint64(7), seedOf("7"))
	for _, bad := range []string{"-1", "now", "0x10", "1e3"} {
		assert.Panics(t, func() { seedOf(bad) }, bad)
	}
}
