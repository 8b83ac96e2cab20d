package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Sleeps end at their time, in the order in which they began, or with their context. Events at the
// same time run in the order of their planning.
func TestSimulation(t *testing.T) {
	s := New(start)
	var log []string
	at := func(what string) {
		log = append(log, time.Duration(s.now-start.UnixNano()).String()+" "+what)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Call(func() {
		assert.NoError(t, s.Sleep(t.Context(), time.Second))
		at("a")
		assert.NoError(t, s.Sleep(t.Context(), 0))
		cancel()
		at("a again")
	})
	s.Call(func() {
		assert.ErrorIs(t, s.Sleep(ctx, 3*time.Second), context.Canceled)
		at("b is woken")
		assert.ErrorIs(t, s.Sleep(ctx, time.Second), context.Canceled)
		assert.NoError(t, s.Sleep(t.Context(), time.Second))
		at("b")
	})
	stop := s.Alarm(2*time.Second, func() { at("no alarm") })
	s.Alarm(time.Second, func() { at("alarm"); stop() })
	s.Call(func() {
		assert.NoError(t, s.Sleep(t.Context(), time.Second))
		at("c")
	})
	for s.Step() {
	}
	assert.Zero(t, s.Active())
	s.Close()
	assert.Empty(t, s.asleep)
	assert.Equal(t, []string{"1s a", "1s a again", "1s b is woken", "1s alarm", "1s c", "2s b"}, log)
}
