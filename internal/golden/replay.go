package golden

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/books"
	"github.com/penstock-go/penstock/rules"
)

// player replays the operations of one trace on a Guard of its own, and keeps the
// book.
type player struct {
	config  Config
	guard   *api.Guard
	clock   *core.ManualClock
	epoch   int64
	due     int64         // what the clock must show
	javaNow int64         // what Java's shows
	slept   int           // waits that the clock has listed so far
	open    map[int]*live // by the call's ID
	waiting []*live       // those of them that wait
	set     rules.Set     // as loaded last
	rules   []activeRule
	lists   lists
	checks  checks
	book    *book
	hot     hotspots

	breakers []breaker.Rule
	twins    []*twin        // of the breakers that were asked so far
	heard    []breakerEvent // in the present operation
	clues
}

var sleepModes = map[string]core.SleepMode{
	"record": core.SleepRecord, "advance": core.SleepAdvance, "park": core.SleepPark,
}

func newPlayer(config Config) (*player, error) {
	mode, ok := sleepModes[config.Sleep]
	if !ok {
		return nil, fmt.Errorf("unknown sleep %q", config.Sleep)
	}
	clock := core.NewManualClock(time.UnixMilli(config.EpochMs))
	clock.SetSleep(mode)
	p := &player{checks: checks{shows: script{-1, -1}}}
	guard, err := api.New(api.Config{
		Machine:       &p.checks.shows,
		Clock:         clock,
		Interval:      config.interval(),
		SampleCount:   config.SampleCount,
		OccupyTimeout: config.occupyTimeout(),
		ColdFactor:    config.ColdFactor,
		Logger:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	p.config, p.guard, p.clock = config, guard, clock
	p.epoch, p.due, p.javaNow = clock.Now(), clock.Now(), clock.Now()
	p.open, p.book = make(map[int]*live), newBook(config)
	p.clues = clues{
		lines: make(map[lineKey]*line), lookedAt: make(map[NodeRef]bool), carried: make(map[string]bool),
	}
	guard.OnBreaker(p.hear)
	return p, nil
}

func (p *player) sinceEpoch(t int64) time.Duration { return time.Duration(t - p.epoch) }

// moveTo sets the clock to t ms after the epoch; a time that has passed moves
// nothing. Calls whose wait ends on the way run, one after the other, and their
// replies are taken, so that none of their goroutines runs on into the next
// operation.
func (p *player) moveTo(t int64) error {
	p.due = max(p.due, p.epoch+t*int64(time.Millisecond))
	p.clock.AdvanceTo(p.due)
	waiting := p.waiting[:0]
	for _, l := range p.waiting {
		if l.released > p.due {
			waiting = append(waiting, l)
			continue
		}
		if err := p.awaited(l, <-l.pending); err != nil {
			return fmt.Errorf("call %d was told to wait %v, and then: %w", l.id, l.wait, err)
		}
	}
	p.waiting = waiting
	return nil
}

// finish lets every waiting call run, ends all calls and closes the Guard. Then
// nothing may be in flight or reserved.
func (p *player) finish() error {
	const after = 48 * time.Hour // the longest wait
	if len(p.waiting) > 0 {
		if err := p.moveTo((p.due - p.epoch + int64(after)) / int64(time.Millisecond)); err != nil {
			return err
		}
	}
	for _, l := range p.open {
		l.entry.Exit()
	}
	if err := p.guard.Close(); err != nil {
		return err
	}
	tree := p.guard.Tree()
	if problems := books.Unsettled(p.guard.Engine()); len(problems) > 0 {
		return fmt.Errorf("at the end %s", strings.Join(problems, "; "))
	}
	if tree.Failures != 0 {
		return fmt.Errorf("slots panicked %d times", tree.Failures)
	}
	return nil
}
