package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { books.Main(m) }

// The schema and its copies match the rules' structs and their comments.
func TestUpToDate(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	want, err := generate(root)
	require.NoError(t, err)
	for _, name := range copies {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(text), "%s is of older rules: run go generate ./rules", name)
	}
	assert.Equal(t, string(want), string(rules.Schema()))
}

// Callers can't change each other's copy of the schema.
func TestSchemaIsACopy(t *testing.T) {
	mine := rules.Schema()
	mine[0] = 'x'
	assert.Equal(t, byte('{'), rules.Schema()[0])
}
