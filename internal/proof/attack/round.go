package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
)

// round is one attempt of an attack. Its randomness depends only on its seed, its attack and its
// number.
type round struct {
	*rand.Rand
	ctx     context.Context
	cancel  context.CancelFunc
	alone   bool // the only round: all of its steps are printed
	offered atomic.Int64
	checked atomic.Int64

	mu       sync.Mutex
	steps    []string
	cleanups []func() error
}

func newRound(seed uint64, attack string, number int) *round {
	name := fnv.New64a()
	fmt.Fprint(name, attack, number)
	r := &round{Rand: rand.New(rand.NewPCG(seed, name.Sum64()))}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// kept is the number of latest steps printed for a failed round, unless it runs alone.
const kept = 30

// step records a step of the round, to be printed if it fails.
func (r *round) step(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) >= 4*kept && !r.alone {
		r.steps = slices.Delete(r.steps, 0, 3*kept)
	}
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}

func (r *round) last() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.alone {
		return slices.Clone(r.steps)
	}
	return slices.Clone(r.steps[max(0, len(r.steps)-kept):])
}

// cleanup registers f to run when the round ends, the last one first.
func (r *round) cleanup(f func() error) { r.cleanups = append(r.cleanups, f) }

// end cleans up, and returns an error about anything left behind.
func (r *round) end() (err error) {
	r.cancel()
	for _, f := range slices.Backward(r.cleanups) {
		err = errors.Join(err, f())
	}
	return err
}

// start is the initial time of the clocks of rounds: an arbitrary whole second.
var start = time.Unix(1_700_000_000, 0)

// silent discards log lines that attacks check in other ways.
var silent = slog.New(slog.DiscardHandler)

// guard returns a guard, on a manual clock unless the configuration has another. When the round
// ends, every call must have ended; then the guard must hold nothing, and no slot may have panicked.
func (r *round) guard(cfg api.Config) (*api.Guard, *clocks.Manual) {
	g, clock := r.bareGuard(cfg)
	r.cleanup(func() error {
		if n := g.Engine().Failures(); n != 0 {
			return fmt.Errorf("%d panics in slots", n)
		}
		return settled(g)
	})
	return g, clock
}

// bareGuard is like guard, but leaves the checks at the end of the round to the attack.
func (r *round) bareGuard(cfg api.Config) (*api.Guard, *clocks.Manual) {
	if cfg.Clock == nil {
		cfg.Clock = clocks.NewManual(start)
	}
	if cfg.Logger == nil {
		cfg.Logger = silent
	}
	g, err := api.New(cfg)
	if err != nil {
		panic(err) // the attack's own bug
	}
	r.cleanup(g.Close)
	clock, _ := cfg.Clock.(*clocks.Manual)
	return g, clock
}

// settled returns an error if a guard still holds something when no call should be running. Don't
// use the guard afterwards.
func settled(g *api.Guard) error {
	var errs []error
	for _, problem := range books.Unsettled(g.Engine()) {
		errs = append(errs, errors.New("in the end: "+problem))
	}
	return errors.Join(errs...)
}

// folder returns a directory that is removed when the round ends.
func (r *round) folder() string {
	dir, err := os.MkdirTemp("", "attack-")
	if err != nil {
		panic(err)
	}
	r.cleanup(func() error { return os.RemoveAll(dir) })
	return dir
}

// pick returns one of the given values.
func pick[T any](r *round, of ...T) T { return of[r.IntN(len(of))] }

// one returns true about once in n times.
func (r *round) one(n int) bool { return r.IntN(n) == 0 }

// between returns a duration from a to b.
func (r *round) between(a, b time.Duration) time.Duration {
	return a + time.Duration(r.Int64N(int64(b-a)+1))
}

// from returns a context in which calls come in through a named context and are made by origin;
// either may be empty.
func from(ctx context.Context, name, origin string) context.Context {
	if name != "" {
		ctx = engine.WithContext(ctx, name)
	}
	if origin != "" {
		ctx = engine.WithOrigin(ctx, origin)
	}
	return ctx
}

// fate returns the outcome of a call.
func fate(err error) string {
	if err == nil {
		return "let in"
	}
	return err.Error()
}

const ms = time.Millisecond

// errBroken is the error of failing guarded code.
var errBroken = errors.New("broken")

// say writes down everything in a set.
func say(set rules.Set) string {
	text, err := set.YAML()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
