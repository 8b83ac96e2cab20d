package api_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

var quotaLogDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// loggedQuotas returns a Guard that keeps its quotas in a log.
func loggedQuotas(t *testing.T, path string, clock *api.ManualClock, set api.RuleSet) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{Clock: clock, QuotaLog: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	require.NoError(t, g.LoadRules(set))
	return g
}

// admitted returns the number of calls that are admitted before one is refused, at most n.
func admitted(t *testing.T, g *api.Guard, n int, resource string, opts ...api.Option) int {
	t.Helper()
	for i := range n {
		e, err := g.Entry(t.Context(), resource, opts...)
		if err != nil {
			return i
		}
		e.Exit()
	}
	return n
}

// admittedInAll is like admitted, but goes on after the calls that wait for a mark.
func admittedInAll(t *testing.T, g *api.Guard, resource string, opts ...api.Option) (n int) {
	t.Helper()
	for {
		n += admitted(t, g, 1_000_000, resource, opts...)
		if g.Engine().QuotaLog() == nil {
			return n
		}
		require.NoError(t, g.Engine().QuotaLog().Flush())
		e, err := g.Entry(t.Context(), resource, opts...)
		if err != nil {
			return n
		}
		e.Exit()
		n++
	}
}

// A Guard goes on with the quotas of the one before it: exactly, if that was closed.
func TestQuotasOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas")
	clock := api.NewManualClock(quotaLogDay)
	set := api.RuleSet{
		Flow:    []flow.Rule{{ID: "all", Resource: "a", Threshold: 100, Per: spec.PerDay}},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "b", Param: "user", Threshold: 50, Per: spec.PerMonth, MaxValues: 1000}},
	}
	ann, bob := api.Param("user", "ann"), api.Param("user", "bob")
	g := loggedQuotas(t, path, clock, set)
	require.NoError(t, g.Engine().QuotaLog().Flush())
	assert.Equal(t, 5, admitted(t, g, 5, "a"))
	assert.Equal(t, 3, admitted(t, g, 3, "b", ann))
	_, err := api.New(api.Config{QuotaLog: path})
	assert.ErrorContains(t, err, "Config.QuotaLog: "+path+" is used by another process or Guard")
	require.NoError(t, g.Close())
	assert.Zero(t, admitted(t, g, 1, "a"), "closed")

	g = loggedQuotas(t, path, clock, set)
	assert.Equal(t, 3, admitted(t, g, 3, "b", ann), "the first call of a restart doesn't wait")
	assert.Equal(t, 44, admittedInAll(t, g, "b", ann))
	assert.Equal(t, 50, admittedInAll(t, g, "b", bob))
	assert.Equal(t, 95, admittedInAll(t, g, "a"))
	require.NoError(t, g.Close())

	clock.Advance(24 * time.Hour)
	g = loggedQuotas(t, path, clock, set)
	assert.Equal(t, 100, admittedInAll(t, g, "a"), "another day")
	assert.Zero(t, admittedInAll(t, g, "b", bob), "the same month")
	require.NoError(t, g.Close())
	clock.Advance(31 * 24 * time.Hour)
	g = loggedQuotas(t, path, clock, set)
	assert.Equal(t, 50, admittedInAll(t, g, "b", ann))
}

// Values in the log get a cell again, even if as many others came first; values that shared the rest
// start from its use.
func TestQuotasOfManyValuesOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas")
	clock := api.NewManualClock(quotaLogDay)
	set := api.RuleSet{Hotspot: []hotspot.Rule{{ID: "users", Resource: "b", Param: "user", Threshold: 50, Per: spec.PerMonth, MaxValues: 3}}}
	user := func(i int) api.Option { return api.Param("user", strconv.Itoa(i)) }
	g := loggedQuotas(t, path, clock, set)
	for i := range 3 {
		require.NoError(t, g.Engine().QuotaLog().Flush())
		assert.Equal(t, 1, admitted(t, g, 1, "b", user(i)))
	}
	assert.Equal(t, 2, admitted(t, g, 2, "b", user(3)))
	assert.Equal(t, 1, admitted(t, g, 1, "b", user(4)), "from the rest")
	require.NoError(t, g.Close())

	g = loggedQuotas(t, path, clock, set)
	assert.Equal(t, 47, admittedInAll(t, g, "b", user(5)), "from the rest, as the log is full")
	assert.Equal(t, 0, admittedInAll(t, g, "b", user(3)))
	for i := range 3 {
		assert.Equal(t, 49, admittedInAll(t, g, "b", user(i)))
	}

	// Long texts share a use in the log.
	long := func(end string) api.Option { return api.Param("user", strings.Repeat("x", 100)+end) }
	path += ".other"
	set.Hotspot[0].MaxValues = 100
	g = loggedQuotas(t, path, clock, set)
	assert.Equal(t, 50, admittedInAll(t, g, "b", long("a")))
	assert.Equal(t, 50, admittedInAll(t, g, "b", long("b")))
	require.NoError(t, g.Close())
	g = loggedQuotas(t, path, clock, set)
	assert.Zero(t, admittedInAll(t, g, "b", long("a")))
	assert.Zero(t, admittedInAll(t, g, "b", long("c")))
	assert.Equal(t, 50, admittedInAll(t, g, "b", user(77)))
}

const (
	killedQuotas = "PENSTOCK_KILLED_QUOTAS"
	quotaOfDay   = 4000
	quotaOfUser  = 1500
)

// TestQuotaProcess is the process that TestQuotasOverKills kills.
func TestQuotaProcess(t *testing.T) {
	path := os.Getenv(killedQuotas)
	if path == "" {
		t.Skip("only in a process of TestQuotasOverKills")
	}
	g := loggedQuotas(t, path, api.NewManualClock(quotaLogDay), api.RuleSet{
		Flow:    []flow.Rule{{ID: "all", Resource: "a", Threshold: quotaOfDay, Per: spec.PerDay}},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "a", Param: "user", Threshold: quotaOfUser, Per: spec.PerDay}},
	})
	for i := 0; ; i++ {
		user := strconv.Itoa(i % 4)
		e, err := g.Entry(context.Background(), "a", api.Param("user", user))
		line := user
		if err == nil {
			e.Exit()
		} else {
			b, _ := errors.AsType[*api.BlockError](err)
			wait, _ := b.RetryAfter()
			if b.Rule != "all" || wait == 0 { // it waits for a mark
				runtime.Gosched()
				continue
			}
			line = "full"
		}
		if _, err := fmt.Println(line); err != nil {
			return // the parent is gone
		}
	}
}

// Processes that are killed with kill -9 at any moment admit no more than the limit together, and too much
// is charged only as docs/rules/quotas.md says.
func TestQuotasOverKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas")
	rng := chance.Source(t)
	users, all, lives := map[string]int{}, 0, 0
	for full := false; !full; lives++ {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestQuotaProcess$")
		child.Env = append(os.Environ(), killedQuotas+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewReader(out)
		next := func() bool {
			line, err := lines.ReadString('\n')
			if err != nil {
				return false
			}
			switch line = strings.TrimSpace(line); line {
			case "full":
				full = true
			default:
				users[line]++
				all++
			}
			return true
		}
		for range 1 + rng.IntN(400) {
			require.True(t, next(), "the process ended by itself")
			if full {
				break
			}
		}
		require.NoError(t, child.Process.Kill())
		for next() {
		}
		_ = child.Wait() // it was killed
		require.Less(t, lives, 1000)
	}
	t.Log(lives, "lives,", all, "calls,", users)
	assert.LessOrEqual(t, all, quotaOfDay)
	for user, n := range users {
		assert.LessOrEqual(t, n, quotaOfUser, user)
	}
	assert.GreaterOrEqual(t, all, quotaOfDay-lives*(2*40+1), "charged too much")
}
