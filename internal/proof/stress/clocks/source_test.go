package clocks

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

func TestMain(m *testing.M) { books.Main(m) }

var seed, random = chance.Seed, chance.Source

const (
	ms   = time.Millisecond
	year = 365 * 24 * time.Hour
)

// source is a wall clock that a test moves and sets. It is for one goroutine.
type source struct {
	begin int64
	real  time.Duration // has passed, regardless of the clock
	set   time.Duration // by how much the clock was set

	parks  bool // sleepers let time pass; otherwise sleeps are only recorded
	slept  []time.Duration
	asleep func()
	read   func() // called once, after the next reading
}

func newSource() *source { return &source{begin: time.Unix(1_700_000_000, 0).UnixNano()} }

func (s *source) Now() int64 {
	now := s.begin + int64(s.real+s.set)
	if f := s.read; f != nil {
		s.read = nil
		f()
	}
	return now
}

// Sleep sleeps by real time, as timers do.
func (s *source) Sleep(ctx context.Context, d time.Duration) error {
	s.slept = append(s.slept, d)
	if s.parks {
		s.real += d / 2
	}
	if s.asleep != nil {
		s.asleep()
	}
	if s.parks {
		s.real += d - d/2
	}
	return ctx.Err()
}

// Alarm never rings: the machine's timer, which a guard would use otherwise, rings on a separate
// goroutine.
func (s *source) Alarm(time.Duration, func()) (stop func()) { return func() {} }

// waited returns the total length of the waits after the first n.
func (s *source) waited(n int) (sum time.Duration) {
	for _, d := range s.slept[n:] {
		sum += d
	}
	return sum
}
