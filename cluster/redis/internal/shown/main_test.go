package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program that docs/cluster.md shows is main.go, which the build of this test compiles.
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
