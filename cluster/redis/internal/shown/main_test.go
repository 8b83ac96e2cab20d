package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/cluster.md shows main.go; building this test compiles it.
func TestProgramShown(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cluster.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```go main.go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	require.True(t, ok && closed)
	file, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Equal(t, string(file), program)
}
