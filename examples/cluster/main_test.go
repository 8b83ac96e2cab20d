package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The processes that the example starts run this program, which is the test binary in a test.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		exit(member(job, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), settings{out: &out, seconds: 6}))
	check(t, out.String(), "kept by process 1")
}

// check checks the output: a line for each second, and the fate of process 2.
func check(t *testing.T, text, store string) {
	assert.Contains(t, text, "3 processes offer 800 calls a second each; 1000 a second are allowed in total.\nThe store: "+store+"\n")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 2+1+1+6+2+3, text)
	assert.Contains(t, text, "process 2 is killed\n")
	assert.Contains(t, text, "process 2 is started again\n")
	most := 0
	for _, line := range lines[4:] {
		columns := strings.Fields(line)
		if len(columns) != 6 {
			continue // a line about process 2
		}
		sum, err := strconv.Atoi(columns[4])
		require.NoError(t, err, text)
		most = max(most, sum)
	}
	assert.Positive(t, most, "nothing was ever admitted")
	assert.LessOrEqual(t, most, 2*limit-limit/members, text) // the bound of onFailure: local, on a machine too busy for the store
}

func TestRunOnRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT TESTED AGAINST A REAL REDIS: redis-server is not installed (Debian: apt-get install redis-server)")
	}
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	socket := dir + "/s"
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	require.NoError(t, server.Start())
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), settings{out: &out, seconds: 6, redis: "unix://" + socket}))
	check(t, out.String(), "unix://"+socket)
}

func TestRedisThatDoesNotAnswer(t *testing.T) {
	var out bytes.Buffer
	assert.ErrorContains(t, run(t.Context(), settings{out: &out, seconds: 1, redis: "localhost:6379"}), "not a URL")
	err := run(t.Context(), settings{out: &out, seconds: 1, redis: "redis://ann:topsecret@127.0.0.1:1"})
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error()+out.String(), "topsecret")
}
