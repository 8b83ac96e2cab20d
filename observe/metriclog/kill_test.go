package metriclog

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

const (
	killedDir   = "PENSTOCK_TEST_METRICLOG"       // the directory of TestWriterProcess
	killedFirst = "PENSTOCK_TEST_METRICLOG_FIRST" // its first second
	allKills    = "PENSTOCK_METRICLOG_KILLS"      // number of kills in TestKills
)

// The counts of the killed process are a function of the second, so that the expected log is known.
func passes(second int64) int64   { return 1 + second%7 }
func refusals(second int64) int64 { return second % 3 }

// TestWriterProcess is the process that TestKills kills.
func TestWriterProcess(t *testing.T) {
	dir := os.Getenv(killedDir)
	if dir == "" {
		t.Skip("this is the process that TestKills starts and kills; it needs a directory from it")
	}
	first, err := strconv.ParseInt(os.Getenv(killedFirst), 10, 64)
	require.NoError(t, err)
	clock := clocks.NewManual(time.Unix(first, 0))
	e, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Chain: Chain()})
	require.NoError(t, err)
	require.NoError(t, e.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "shut", Resource: "closed", Threshold: 0}}}))
	_, err = Start(e, Config{Dir: dir, App: "shop", MaxBytes: 2 << 10, MaxFiles: 1 << 20, BlockBytes: 2 << 10, BlockFiles: 1 << 10, Location: time.UTC})
	require.NoError(t, err)
	for second := first; ; second++ {
		for range passes(second) {
			entry, err := e.Entry(t.Context(), "orders|"+strconv.Itoa(int(second%5)))
			require.NoError(t, err)
			entry.Exit()
		}
		for range refusals(second) {
			_, err := e.Entry(t.Context(), "closed")
			require.Error(t, err)
		}
		clock.Advance(time.Second)
		if _, err := fmt.Println(second); err != nil {
			return // the parent is gone
		}
	}
}

// A process killed with kill -9 at any moment leaves logs that read back, with everything except the
// second that was current or being written. The next process adds new files.
func TestKills(t *testing.T) {
	kills := 30
	if testing.Short() {
		kills = 10
	}
	if text := os.Getenv(allKills); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	rng := chance.Source(t)
	var dir string
	next, torn := start.Unix(), 0
	for i := range kills {
		if i%25 == 0 {
			dir = t.TempDir()
		}
		first := next
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriterProcess$")
		child.Env = append(os.Environ(), killedDir+"="+dir, killedFirst+"="+strconv.FormatInt(first, 10))
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewReader(out)
		last := first - 1 // known to be over
		tell := func() bool {
			line, err := lines.ReadString('\n')
			if err != nil {
				return false // perhaps in the middle of a number
			}
			last, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			require.NoError(t, err)
			return true
		}
		for range 1 + rng.IntN(30) {
			require.True(t, tell(), "the process ended by itself")
		}
		for range rng.IntN(3000) { // to somewhere within a second
			runtime.Gosched()
		}
		require.NoError(t, child.Process.Kill())
		for tell() {
		}
		_ = child.Wait() // it was killed
		next = checkKilled(t, dir, first, last)
		torn += tornFiles(t, dir)
	}
	t.Log(kills, "kills,", torn, "times a line had no end")
}

// checkKilled checks the logs, and returns the second after the last one in them.
func checkKilled(t *testing.T, dir string, first, last int64) (next int64) {
	t.Helper()
	rows, err := Find(dir, "shop-metrics.log", Query{From: time.Unix(first, 0), Limit: maxLimit})
	require.NoError(t, err)
	next = first
	for _, row := range rows {
		second := row.At.Unix()
		if row.Resource == "closed" {
			require.Equal(t, next, second, "in order")
			require.Equal(t, Row{At: row.At, Resource: "closed", Block: refusals(second)}, row)
			continue
		}
		require.Equal(t, next, second, "none is missing")
		require.Equal(t, Row{At: row.At, Resource: fmt.Sprint("orders_", second%5), Pass: passes(second), Complete: passes(second)}, row)
		next++
	}
	require.Greater(t, next, last, "a completed second is missing")
	require.LessOrEqual(t, next, last+3)

	files, err := list(dir, "shop-metrics.log")
	require.NoError(t, err)
	for _, f := range files {
		q := Query{Limit: maxLimit}
		_, err := q.read(f.path)
		require.NoError(t, err)
		info, err := os.Stat(f.path + indexSuffix)
		if err == nil { // a kill may come before it is created
			require.Less(t, info.Size()%entrySize, int64(entrySize))
		}
	}

	lines := make(map[string]bool)
	paths, err := filepath.Glob(filepath.Join(dir, "sentinel-block.log*"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			if bytes.HasSuffix(line, []byte("\n")) {
				lines[string(line)] = true
			}
		}
	}
	for second := first; second <= last; second++ {
		if n := refusals(second); n > 0 {
			line := fmt.Sprintf("%s|1|closed,FlowException,default,,shut|%d\n", time.Unix(second, 0).UTC().Format(time.DateTime), n)
			require.True(t, lines[line], "the block log lacks %q", line)
		}
	}
	return next + 1
}

// tornFiles returns the number of files that don't end with a line end.
func tornFiles(t *testing.T, dir string) (torn int) {
	t.Helper()
	files, err := list(dir, "shop-metrics.log")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f.path)
		require.NoError(t, err)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			torn++
		}
	}
	return torn
}

// The same holds if the process stops after any byte that a log writes, as if within a write: the disk
// has everything up to that byte.
func TestStoppedAtEveryByte(t *testing.T) {
	clock := clocks.NewManual(start)
	e, l := newLogged(t, clock, Config{MaxBytes: leastBytes})
	seconds := 60
	if testing.Short() {
		seconds = 30
	}
	type written struct {
		path   string
		data   []byte
		second int // complete with the last byte
	}
	var history []written
	sizes := make(map[string]int)
	for i := range seconds {
		second := start.Unix() + int64(i)
		require.NoError(t, call(t, e, "orders", int(passes(second))))
		require.NoError(t, call(t, e, "carts", 1))
		clock.Advance(time.Second)
		files, err := list(l.config.Dir, l.base)
		require.NoError(t, err)
		for _, path := range []string{files[len(files)-1].path + indexSuffix, files[len(files)-1].path} { // in the order of writing
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			history = append(history, written{path, bytes.Clone(text[sizes[path]:]), i})
			sizes[path] = len(text)
		}
	}
	dir := t.TempDir()
	checks := 0
	for n, w := range history {
		path := filepath.Join(dir, filepath.Base(w.path))
		for cut := range w.data {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			require.NoError(t, err)
			_, err = f.Write(w.data[cut : cut+1])
			require.NoError(t, err)
			require.NoError(t, f.Close())
			if cut != len(w.data)-1 && (n*7+cut)%5 != 0 {
				continue
			}
			whole := w.second // seconds
			if n%2 == 1 && cut == len(w.data)-1 {
				whole++
			}
			rows, err := Find(dir, l.base, Query{From: start})
			require.NoError(t, err)
			checks++
			var got int
			for _, row := range rows {
				at := row.At.Unix() - start.Unix()
				if row.Resource == "carts" {
					require.EqualValues(t, 1, row.Pass)
					continue
				}
				require.Equal(t, passes(start.Unix()+at), row.Pass)
				got++
			}
			require.Equal(t, whole, got)
			if at := max(whole-2, 0); whole > 0 { // and through the index
				rows, err = Find(dir, l.base, Query{From: start.Add(time.Duration(at) * time.Second), Resource: "orders"})
				require.NoError(t, err)
				require.Len(t, rows, whole-at)
			}
		}
	}
	assert.Greater(t, checks, 500)
	t.Log(checks, "places to stop at")
}
