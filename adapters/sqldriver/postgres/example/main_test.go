package main

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/sqldriver/postgres/internal/server"
)

func TestMainPrints(t *testing.T) {
	t.Setenv("DATABASE_URL", server.Start(t))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = old
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "answer 0\nanswer 1\nrefused\n", string(out))
}
