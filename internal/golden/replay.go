package golden

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/books"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
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
	rules   []activeRule
	book    *book
	hot     hotspots
	native  rules.Set // in force
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
	guard, err := api.New(api.Config{
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
	return &player{
		config: config, guard: guard, clock: clock, epoch: clock.Now(), due: clock.Now(), javaNow: clock.Now(),
		open: make(map[int]*live), book: newBook(config),
		clues: clues{
			lines: make(map[lineKey]*line), lookedAt: make(map[NodeRef]bool), carried: make(map[string]bool),
		},
	}, nil
}

func (p *player) sinceEpoch(t int64) time.Duration { return time.Duration(t - p.epoch) }

// load replaces the flow rules by what they translate to.
func (p *player) load(java []JavaFlowRule) ([]Dropped, error) {
	shape := stat.Shape{Interval: p.config.interval(), Buckets: p.config.SampleCount}
	native, dropped := TranslateFlow(java, shape, p.config.ColdFactor)
	p.native.Flow = native
	if err := p.guard.LoadRules(p.native); err != nil {
		return nil, err
	}
	active, err := activate(p.guard.Rules().Flow)
	if err != nil {
		return nil, err
	}
	same := slices.EqualFunc(p.rules, active, func(a, b activeRule) bool { return a.Rule == b.Rule })
	for _, old := range p.rules {
		if !same && slices.ContainsFunc(active, func(r activeRule) bool { return r.ID == old.ID }) {
			p.carried[old.ID] = true
		}
	}
	maps.DeleteFunc(p.lines, func(key lineKey, l *line) bool { // a queue lasts as long as its rule
		i := slices.IndexFunc(active, func(r activeRule) bool { return r.ID == key.rule && r.covers(key.resource) })
		l.known = l.known && i >= 0 && active[i].queues()
		return i < 0
	})
	p.rules, p.refused = active, nil
	for _, d := range dropped {
		if !d.ByJava {
			i := slices.IndexFunc(java, func(r JavaFlowRule) bool { return r.ID == d.ID })
			p.refused = append(p.refused, java[i])
		}
	}
	return dropped, nil
}

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
		r := <-l.pending
		if r.err != nil {
			return fmt.Errorf("call %d was told to wait %v, and then: %w", l.id, l.wait, r.err)
		}
		l.entry, l.pending = r.entry, nil
	}
	p.waiting = waiting
	return nil
}

// finish lets every waiting call run, ends all calls and closes the Guard. Then
// nothing may be in flight or reserved.
func (p *player) finish() error {
	const after = 48 * time.Hour // the longest wait
	if err := p.moveTo((p.due - p.epoch + int64(after)) / int64(time.Millisecond)); err != nil {
		return err
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
