package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

var (
	oneHeap = flag.Int("heap", 0, "the shape of TestOneLoad, by its number")
	oneSize = flag.Int("rules", 10, "how many rules TestOneLoad loads")
)

// Rules of an odd shape are loaded after all their resources have been called, changed, and loaded
// again. Few calls are made under them: each may ask all rules.
func TestOneLoad(t *testing.T) {
	r, h, n := newRound(1, "loads", 1), heaps[*oneHeap], *oneSize
	defer func() { require.NoError(t, r.end()) }()
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepAdvance)
	g, _ := r.bareGuard(api.Config{Clock: clock, Caps: node.Caps{Resources: 3 * n, Calls: 3 * n, Origins: 3 * n, Contexts: 3 * n}})
	call := func(times int) {
		for i := range times {
			name, context, origin := h.call(i)
			e, _ := g.Entry(from(r.ctx, context, origin), name, api.Inbound())
			e.Exit()
		}
	}
	call(n)
	set := heapOf(h, n)
	for range 2 {
		for _, change := range []func(*rules.Set){otherLimits, otherIntervals} {
			require.NoError(t, g.LoadRules(set))
			call(min(n, 2))
			change(&set)
		}
	}
}

// For every odd shape, the number of statements executed by a load grows linearly with the number
// of rules, not quadratically: four times as many rules take four times as many steps, plus at most
// a fourteenth. A build of this test with coverage counts them, so a slow machine changes nothing.
// known bug 126
func TestLoadsTakeLinearSteps(t *testing.T) {
	figure.AtNight(t) // it builds a program
	race.OneGoroutine(t)
	dir := t.TempDir()
	counting := filepath.Join(dir, "counting.test")
	product, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "../../../api").Output()
	require.NoError(t, err)
	counted := slices.DeleteFunc(strings.Fields(string(product)), func(p string) bool { return !strings.HasPrefix(p, "github.com/penstock-go/") })
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", counting, "-covermode=count", "-coverpkg="+strings.Join(counted, ","), ".").CombinedOutput()
	require.NoError(t, err, string(out))
	steps := func(heap, n int) (sum int64) {
		profile := filepath.Join(dir, "profile")
		out, err := exec.CommandContext(t.Context(), counting, "-test.run=^TestOneLoad$", "-test.coverprofile="+profile,
			fmt.Sprint("-heap=", heap), fmt.Sprint("-rules=", n)).CombinedOutput()
		require.NoError(t, err, string(out))
		file, err := os.Open(profile)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if at := strings.Fields(lines.Text()); len(at) == 3 { // a block, its statements, and how often it ran
				statements, _ := strconv.ParseInt(at[1], 10, 64)
				times, _ := strconv.ParseInt(at[2], 10, 64)
				sum += statements * times
			}
		}
		return sum
	}
	for i, h := range heaps {
		const n = 150
		none, few, many := steps(i, 1), steps(i, n), steps(i, 4*n)
		ratio := float64(many-none) / float64(few-none)
		t.Logf("%-40s %9d steps for %d rules, %9d for %d: %.2f times", h.name, few, n, many, 4*n, ratio)
		if ratio > 4.3 {
			t.Errorf("%s: %d rules take %.1f times the steps of %d", h.name, 4*n, ratio, n)
		}
	}
}
