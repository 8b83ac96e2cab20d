package pages_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

// The program in the README, with its rule file, is examples/hello.
func TestProgramShown(t *testing.T) {
	t.Chdir(docs)
	var program, file string
	for _, b := range blocks(t, "../README.md") {
		switch {
		case b.info == "go" && strings.HasPrefix(b.text, "package main\n"):
			program = b.text
		case b.info == "yaml" && strings.Contains(b.text, "GET /hello"):
			file = b.text
		}
	}
	for name, shown := range map[string]string{"main.go": program, "rules.yaml": file} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "hello", name))
		require.NoError(t, err)
		assert.Equal(t, withoutSchema(string(text)), shown)
	}
}

// The README's program, built as a separate module, runs, refuses calls, and picks up edits of its
// rule file.
func TestProgramShownRuns(t *testing.T) {
	t.Chdir(docs)
	figure.AtNight(t) // it builds a program
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	copied := func(from, to string, edit ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(from)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), []byte(strings.NewReplacer(edit...).Replace(string(text))), 0o644))
	}
	in := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-buildvcs=false -trimpath")
		return cmd
	}
	copied("go.mod", "go.mod", "module github.com/penstock-go/penstock\n", "module example.com/hello\n")
	copied("go.sum", "go.sum")
	copied("examples/hello/rules.yaml", "rules.yaml")
	out, err := in("go", "mod", "edit", "-require=github.com/penstock-go/penstock@v0.0.0", "-replace=github.com/penstock-go/penstock="+root).CombinedOutput()
	require.NoError(t, err, "%s", out)

	var addr string
	var log *output
	statusOf := func() int {
		resp, err := http.Get("http://" + addr + "/hello")
		if err != nil {
			return 0 // it isn't up yet
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	taken := func() bool { return strings.Contains(log.String(), "listen tcp "+addr) }
	for { // another program may take the port in between
		addr = freeAddr(t)
		copied("examples/hello/main.go", "main.go", `"localhost:8080"`, `"`+addr+`"`, "console.Config{}", `console.Config{Addr: "`+freeAddr(t)+`"}`)
		out, err := in("go", "build", "-o", "hello", ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
		program := in(filepath.Join(dir, "hello"))
		log = new(output)
		program.Stdout, program.Stderr = log, log
		require.NoError(t, program.Start())
		t.Cleanup(func() {
			_ = program.Process.Kill() // it may have ended
			_ = program.Wait()         // returns an error, since it was killed
		})
		until(t, "the first request", func() bool { return statusOf() == http.StatusOK || taken() })
		if !taken() {
			break
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})

	until(t, "a refusal", func() bool { return statusOf() == http.StatusTooManyRequests })
	text, err := os.ReadFile(filepath.Join(dir, "rules.yaml"))
	require.NoError(t, err)
	edited := strings.Replace(string(text), "threshold: 5", "threshold: 1000", 1)
	require.NotEqual(t, string(text), edited)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(edited), 0o644))
	until(t, "the new limit", func() bool { return strings.Contains(log.String(), "threshold 5 -> 1000") })
	assert.Equal(t, http.StatusOK, statusOf())
}

// withoutSchema returns a rule file without its first line, which names the schema to editors.
func withoutSchema(file string) string {
	return strings.TrimPrefix(file, "# yaml-language-server: $schema="+rules.SchemaURL+"\n")
}

// until waits for an event that takes at most a second on an idle machine.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, what, ok)
}

// freeAddr returns a loopback address on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// output collects what a program writes, while it writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
