package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/proof/books"
	"github.com/penstock-go/penstock/proof/chance"
)

// TestMain chooses the seed of the random tests, unless one is given, so that the
// figures can name it. A failure is repeated by its seed, not by a file.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		must(flag.Set("rapid.seed", strconv.FormatUint(*chance.Seed, 10)))
	}
	must(flag.Set("rapid.nofailfile", "true"))
	books.Main(m)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func seed() uint64 {
	n, err := strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 0, 64)
	must(err)
	return n
}

// check is rapid.Check with so many histories, unless -rapid.checks says otherwise.
func check(t *testing.T, histories int, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checks.Name })
	if !given {
		must(checks.Value.Set(strconv.Itoa(histories)))
	}
	rapid.Check(t, property)
}

// clock stands where it is put, back as well as forth. Who sleeps on it is handed to
// the test.
type clock struct {
	now    atomic.Int64
	asleep chan *nap
}

type nap struct {
	wait time.Duration
	wake chan struct{}
	ctx  context.Context // of the sleep: it ends when the call is to look again
	of   *handle
}

// whose names the handle of a call in its context.
type whose struct{}

// told reports whether the call is to look again, though it sleeps.
func (n *nap) told() bool { return n.ctx.Err() != nil }

func (c *clock) Now() int64 { return c.now.Load() }

func (c *clock) at() time.Time { return time.Unix(0, c.Now()) }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	n := &nap{wait: d, wake: make(chan struct{}), ctx: ctx, of: ctx.Value(whose{}).(*handle)}
	c.asleep <- n
	select {
	case <-n.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errStumbled = errors.New("a slot that panics")

// stumbler is a slot that panics in the phases it is told to, and does nothing else;
// with what it takes before it does, it says whether everything is given back.
type stumbler struct {
	name  string
	armed map[string]bool
	fell  int
	held  int
}

func (s *stumbler) Name() string { return s.name }

func (s *stumbler) step(phase string) {
	if s.armed[phase] {
		s.fell++
		panic(errStumbled)
	}
}

func (s *stumbler) Prepare(*core.Invocation) { s.step("prepare") }

func (s *stumbler) Ask(*core.Invocation) core.Verdict {
	s.step("ask")
	return core.Verdict{}
}

func (s *stumbler) Take(inv *core.Invocation) core.Verdict {
	s.held++
	inv.Reserve(core.Reservation{Holder: s, UntilExit: true})
	s.step("take")
	return core.Verdict{}
}

func (s *stumbler) GiveBack(*core.Reservation, int64) {
	s.held--
	s.step("giveBack")
}

func (s *stumbler) Passed(*core.Invocation)                    { s.step("passed") }
func (s *stumbler) Blocked(*core.Invocation, *core.BlockError) { s.step("blocked") }
func (s *stumbler) Completed(*core.Invocation)                 { s.step("completed") }

// doubter is a stumbler that is asked again after a wait: no call that waits knows then that
// it will run.
type doubter struct{ *stumbler }

func (s doubter) Recheck(*core.Invocation) core.Verdict {
	s.step("recheck")
	return core.Verdict{}
}

var phases = []string{"prepare", "ask", "take", "giveBack", "recheck", "passed", "blocked", "completed"}
