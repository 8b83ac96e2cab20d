package outlier

import (
	"iter"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/engine"
)

// endpoint is a rule's state for one endpoint, guarded by the lock of the site.
type endpoint struct {
	pool    *pool
	addr    string
	breaker breaker.Single
	touched int64 // time of the last admission or completion, or of its breaker's opening

	in         *list // a list of its pool; nil once dropped
	prev, next *endpoint
}

// GiveBack releases the probe of a call that is refused by another rule.
func (c *endpoint) GiveBack(r *engine.Reservation, _ int64) {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	c.breaker.GiveBack(uint64(r.Token))
}

// list holds endpoints in the order in which they were touched.
type list struct {
	front, back *endpoint // the latest, the earliest
	n           int
}

// put moves c, which was touched just now, to the front of l.
func (l *list) put(c *endpoint) {
	if l.front == c {
		return
	}
	c.leave()
	c.in, c.next = l, l.front
	if l.front != nil {
		l.front.prev = c
	} else {
		l.back = c
	}
	l.front = c
	l.n++
}

// leave takes c out of its list.
func (c *endpoint) leave() {
	l := c.in
	if l == nil {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.front = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.back = c.prev
	}
	c.in, c.prev, c.next = nil, nil, nil
	l.n--
}

// all yields the endpoints, the latest first.
func (l *list) all() iter.Seq[*endpoint] {
	return func(yield func(*endpoint) bool) {
		for c := l.front; c != nil; c = c.next {
			if !yield(c) {
				return
			}
		}
	}
}
