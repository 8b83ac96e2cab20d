package source_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/source"
)

func TestMain(m *testing.M) { books.Main(m) }

var tree = fstest.MapFS{
	"go.mod":             {Data: []byte("module m\n")},
	"a.go":               {Data: []byte("package m\n")},
	"a_test.go":          {Data: []byte("package m_test\n")},
	"a.txt":              {},
	"b/b.go":             {},
	"b/testdata/t.go":    {},
	"nested/go.mod":      {},
	"nested/n.go":        {},
	".hidden/h.go":       {},
	"_old/o.go":          {},
	"vendor/v/v.go":      {},
	"b/deeper/.x/x.go":   {},
	"b/deeper/d_test.go": {},
}

func TestEach(t *testing.T) {
	var all, own []string
	require.NoError(t, source.Each(tree, func(name string, text []byte) error {
		all = append(all, name)
		assert.Equal(t, tree[name].Data, append([]byte(nil), text...), name)
		return nil
	}))
	require.NoError(t, source.EachOfModule(tree, func(name string, _ []byte) error {
		own = append(own, name)
		return nil
	}))
	assert.Equal(t, []string{"a.go", "a_test.go", "b/b.go", "b/deeper/d_test.go", "nested/n.go"}, all)
	assert.Equal(t, []string{"a.go", "a_test.go", "b/b.go", "b/deeper/d_test.go"}, own)
}
