package replay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/model"
	"github.com/penstock-go/penstock/rules"
)

// player replays the operations of one trace on its own Guard, and keeps the book.
type player struct {
	config  Config
	guard   *api.Guard
	clock   *clocks.Manual
	epoch   int64
	due     int64           // the expected time of the clock
	javaNow int64           // Java's
	callers context.Context // can end, so that no turn is final
	open    map[int]*live   // by the call's ID
	waiting []*live         // the waiting ones
	set     rules.Set       // as loaded last
	rules   []activeRule
	lists   lists
	checks  checks
	book    *book
	hot     hotspots

	model *model.Model

	breakers []breaker.Rule
	twins    map[*model.Breaker]*twin
	heard    []breakerEvent // in the current operation
	clues
}

var sleepModes = map[string]clocks.SleepMode{
	"record": clocks.SleepRecord, "advance": clocks.SleepAdvance, "park": clocks.SleepPark,
}

func newPlayer(config Config) (*player, error) {
	mode, ok := sleepModes[config.Sleep]
	if !ok {
		return nil, fmt.Errorf("unknown sleep %q", config.Sleep)
	}
	clock := clocks.NewManual(time.UnixMilli(config.EpochMs))
	clock.SetSleep(mode)
	p := &player{checks: checks{shows: script{-1, -1}}}
	guard, err := api.New(api.Config{
		Host:          &p.checks.shows,
		Clock:         clock,
		Interval:      config.interval(),
		Buckets:       config.SampleCount,
		OccupyTimeout: config.occupyTimeout(),
		ColdFactor:    config.ColdFactor,
		Logger:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	p.config, p.guard, p.clock = config, guard, clock
	p.callers = leaving{context.Background()}
	p.epoch, p.due, p.javaNow = clock.Now(), clock.Now(), clock.Now()
	p.open, p.book = make(map[int]*live), newBook(config)
	p.model = model.New(model.Config{
		Now: p.due, Interval: config.interval(), Buckets: config.SampleCount, Occupy: config.occupyTimeout(), Direct: true,
	})
	p.twins = make(map[*model.Breaker]*twin)
	p.clues = clues{
		lines: make(map[flowKey]*line), lookedAt: make(map[NodeRef]bool), carried: make(map[string]bool),
	}
	guard.OnBreaker(p.hear)
	return p, nil
}

// leaving is a context that could end, but doesn't.
type leaving struct{ context.Context }

func (leaving) Done() <-chan struct{} { return neverDone }

var neverDone = make(chan struct{})

func (p *player) sinceEpoch(t int64) time.Duration { return time.Duration(t - p.epoch) }

// moveTo sets the clock to t ms after the epoch; a time that has passed moves nothing. Calls whose
// wait ends on the way run, one after the other, and their replies are received, so that none of
// their goroutines runs on into the next operation.
func (p *player) moveTo(t int64) error {
	p.due = max(p.due, p.epoch+t*int64(time.Millisecond))
	p.clock.AdvanceTo(p.due)
	for len(p.waiting) > 0 && p.next().released <= p.due {
		if err := p.wake(); err != nil {
			return err
		}
	}
	p.model.Advance(p.due)
	return nil
}

// wake receives the reply of the call that runs next. If several waits end at one instant, their
// order is undefined, and a breaker may have a probe for one of them: it returns the first whose
// reply is correct.
func (p *player) wake() (wrong error) {
	all := slices.Clone(p.waiting)
	now := p.next().released
	for _, l := range all {
		if l.released != now {
			continue
		}
		r, ok := p.reply(l)
		if !ok {
			return fmt.Errorf("call %d, which asked at %v, still sleeps at %v, but should have run at %v",
				l.id, p.sinceEpoch(l.asked), p.sinceEpoch(p.due), p.sinceEpoch(l.released))
		}
		p.waiting = slices.DeleteFunc(slices.Clone(all), func(w *live) bool { return w == l })
		p.model.Advance(now)
		err := p.awaited(l, r)
		if err == nil {
			return nil
		}
		l.pending <- r
		p.waiting = slices.Clone(all)
		wrong = cmp.Or(wrong, fmt.Errorf("call %d had to wait %v, and then failed: %w", l.id, l.wait, err))
	}
	return wrong
}

// reply returns the result of a waiting call, or false if it sleeps. A woken call replies soon, so
// it sleeps if the number of sleepers equals the number of calls without a reply.
func (p *player) reply(l *live) (r reply, ok bool) {
	for {
		select {
		case r = <-l.pending:
			return r, true
		default:
		}
		without := 0
		for _, w := range p.waiting {
			if len(w.pending) == 0 {
				without++
			}
		}
		if len(l.pending) == 0 && p.clock.Parked() >= without {
			return r, false
		}
		runtime.Gosched()
	}
}

// retime updates when waiting calls run, from their current turns.
func (p *player) retime(now int64) {
	for _, l := range slices.Clone(p.waiting) {
		released := max(now, l.m.Wake())
		if released > l.released && l.aside == "" { // another call jumped ahead
			l.aside = "B8"
		}
		if released != l.released {
			l.released = released
			p.waiting = append(slices.DeleteFunc(p.waiting, func(w *live) bool { return w == l }), l)
		}
	}
}

// next returns the waiting call that runs next. If several are due at the same time, it is the call
// whose time was set first.
func (p *player) next() *live {
	return slices.MinFunc(p.waiting, func(a, b *live) int { return cmp.Compare(a.released, b.released) })
}

// finish lets every waiting call run, ends all calls and closes the Guard. Then nothing may be in
// flight or reserved.
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
