package penstockredis_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program that docs/cluster.md shows compiles.
func TestProgramShown(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```go main.go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	require.True(t, ok && closed)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
	said, err := exec.Command("go", "build", "-o", os.DevNull, file).CombinedOutput()
	require.NoError(t, err, string(said))
}
