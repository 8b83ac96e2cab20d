// Package meet lets test cases and handlers wait for each other.
package meet

import (
	"errors"
	"time"
)

// Patience is the default limit on the wait for an event that must come: go test's own limit comes
// first. A shorter one fails on a busy machine.
const Patience = time.Hour

// Point is the meeting point of a case and a handler. Make one with [New].
type Point struct {
	Patience time.Duration // of the case
	Held     chan struct{} // gets a value when a handler arrives
	Release  chan struct{} // gets a value to let it continue
	Over     chan struct{} // closed when the case ends
}

// New returns a point for one case.
func New(patience time.Duration) *Point {
	return &Point{patience, make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

// Arrived waits until a handler has arrived.
func (p *Point) Arrived() error {
	select {
	case <-p.Held:
		return nil
	case <-time.After(p.Patience):
		return errors.New("the handler does not get there")
	}
}

// LetGo lets a handler continue.
func (p *Point) LetGo() error {
	select {
	case p.Release <- struct{}{}:
		return nil
	case <-time.After(p.Patience):
		return errors.New("the handler does not wait")
	}
}

// Until waits for a condition that other goroutines bring about, and reports whether they did.
// There is no notification, so it polls every millisecond.
func Until(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
