package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

// campaign is one run of the command: rounds of the attacks in turn, until the time is up or a
// promise is broken.
type campaign struct {
	attacks []attack
	seed    uint64
	lasts   time.Duration
	rounds  int       // of each attack; 0 means as many as there is time for
	round   int       // the only one to run; 0 means as many as there is time for
	screen  io.Writer // for progress, or nil

	tallies []tally // as attacks
	took    time.Duration
}

// tally counts the work of one attack.
type tally struct {
	rounds           int
	offered, checked int64
	took             time.Duration
}

// finding is a broken promise.
type finding struct {
	attack attack
	number int // of the round
	round  *round
	reason string
}

// patience limits the time of a round. Most take less than a tenth of a second; one that takes
// longer than this hangs.
const patience = 2 * time.Minute

// run runs rounds until the time is up, always of the attack that has had the least time, and at
// least one of each. It stops at the first broken promise.
func (c *campaign) run() *finding {
	c.tallies = make([]tally, len(c.attacks))
	start := time.Now()
	defer func() { c.took = time.Since(start) }()
	var shown time.Time
	for {
		next := 0
		for i, t := range c.tallies {
			if c.rounds > 0 && t.rounds < c.tallies[next].rounds || c.rounds == 0 && t.took < c.tallies[next].took {
				next = i
			}
		}
		t, number := &c.tallies[next], c.tallies[next].rounds+1
		if c.round > 0 {
			number = c.round
		}
		left := c.lasts - time.Since(start)
		over := left <= 0
		if c.rounds > 0 {
			over = t.rounds >= c.rounds
		}
		if t.rounds > 0 && (c.round > 0 || over) {
			break
		}
		if c.screen != nil && time.Since(shown) > 100*time.Millisecond {
			shown = time.Now()
			fmt.Fprintf(c.screen, "\r\033[K%s left, %s, round %s", max(left, 0).Round(time.Second), c.attacks[next].name, grouped(int64(number)))
		}
		began := time.Now()
		r := newRound(c.seed, c.attacks[next].name, number)
		r.alone = c.round > 0
		reason := c.make(c.attacks[next], r)
		t.rounds++
		t.offered += r.offered.Load()
		t.checked += r.checked.Load()
		t.took += time.Since(began)
		if reason != "" {
			c.clear()
			return &finding{attack: c.attacks[next], number: number, round: r, reason: reason}
		}
	}
	c.clear()
	return nil
}

func (c *campaign) clear() {
	if c.screen != nil {
		fmt.Fprint(c.screen, "\r\033[K")
	}
}

// make runs a round and returns the reason if it failed. A panic is a failure, and so is a round
// that doesn't end, which may leave its goroutines behind.
func (c *campaign) make(a attack, r *round) (reason string) {
	over := make(chan string, 1)
	go func() {
		over <- func() (reason string) {
			defer func() {
				if p := recover(); p != nil {
					reason = fmt.Sprintf("panic: %v\n%s", p, head(debug.Stack()))
				}
			}()
			err := a.run(r)
			if left := r.end(); err == nil {
				err = left
			}
			if err != nil {
				return err.Error()
			}
			return ""
		}()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case reason = <-over:
		return reason
	case <-timer.C:
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		return fmt.Sprintf("the round has not ended within %v\n%s", patience, &stacks)
	}
}

// head returns the beginning of a stack.
func head(stack []byte) []byte {
	return bytes.Join(bytes.SplitN(stack, []byte("\n"), 30)[:min(29, bytes.Count(stack, []byte("\n")))], []byte("\n"))
}

// report writes the work of each attack, and the finding if there is one.
func (c *campaign) report(out io.Writer, found *finding) {
	fmt.Fprintf(out, "attack: seed %d, %s on %d processors, %s\n\n", c.seed, c.took.Round(time.Millisecond),
		runtime.GOMAXPROCS(0), runtime.Version())
	fmt.Fprintf(out, "%-10s %7s %11s %12s  %s\n", "", "rounds", "offered", "checked", "of what")
	var all tally
	for i, a := range c.attacks {
		t := c.tallies[i]
		fmt.Fprintf(out, "%-10s %7s %11s %12s  %s\n", a.name, grouped(int64(t.rounds)), grouped(t.offered), grouped(t.checked), a.units)
		all.rounds += t.rounds
		all.offered += t.offered
		all.checked += t.checked
	}
	fmt.Fprintf(out, "%-10s %7s %11s %12s\n\n", "", grouped(int64(all.rounds)), grouped(all.offered), grouped(all.checked))
	if found == nil {
		fmt.Fprintln(out, "Every promise held.")
		return
	}
	fmt.Fprintf(out, "BROKEN: %s, in round %d: %s\n", found.attack.name, found.number, found.attack.promise)
	fmt.Fprintf(out, "%s\n", strings.TrimRight(found.reason, "\n"))
	for _, step := range found.round.last() {
		fmt.Fprintf(out, "  %s\n", step)
	}
	fmt.Fprintf(out, "\nSee it again:\n  go run ./internal/proof/attack -only %s -seed %d -round %d\n", found.attack.name, c.seed, found.number)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
