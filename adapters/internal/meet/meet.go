// Package meet is how the cases of adapters and the handlers that they look at wait for each
// other. It is for tests.
package meet

import (
	"errors"
	"time"
)

// Patience is the default wait for what is bound to happen: the limit of go test comes first. A shorter
// one fails on a busy machine.
const Patience = time.Hour

// Point is where a case and a handler meet. Make one with [New].
type Point struct {
	Patience time.Duration // of the case
	Held     chan struct{} // gets one when a handler has got there
	Release  chan struct{} // gets one when it is to go on
	Over     chan struct{} // closed when the case is
}

// New returns a point for one case.
func New(patience time.Duration) *Point {
	return &Point{patience, make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

// Arrived waits until a handler has got there.
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
// There is no notification, so it looks every millisecond.
func Until(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
