package breaker

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
)

// Change is a breaker's transition from one state to another.
type Change struct {
	Rule     string // the rule's ID
	Resource string
	From, To State
	// Value is the measured value that tripped the breaker: a share, or a number of calls. It is 1
	// if a probe failed or was slow, otherwise 0.
	Value float64
	// At is the time of the change, on the engine's clock.
	At time.Time
	// Number increases with every change of this breaker. Concurrent callers may report changes out
	// of order.
	Number uint64

	of *terms // nil if nothing changed
}

func (c Change) notify() {
	if c.of != nil && c.of.tell != nil {
		c.of.tell(c)
	}
}

// listeners are the functions to call when a breaker changes its state; see api.Guard.OnBreaker. The
// zero value has none. Safe for concurrent use.
type listeners struct {
	mu   shared.Mutex                // guards replacing list
	list shared.Pointer[[]*listener] // replaced as a whole
}

type listener struct{ f func(Change) }

// add adds a listener; remove removes it again, without waiting for a running call of it.
func (l *listeners) add(f func(Change)) (remove func()) {
	added := &listener{f}
	l.edit(func(list []*listener) []*listener { return append(list, added) })
	return func() {
		l.edit(func(list []*listener) []*listener {
			return slices.DeleteFunc(list, func(other *listener) bool { return other == added })
		})
	}
}

func (l *listeners) edit(change func([]*listener) []*listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := change(slices.Clone(l.all()))
	l.list.Store(&list)
}

func (l *listeners) all() []*listener {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// tell calls the listeners registered at its start.
func (l *listeners) tell(e *engine.Engine, c Change) {
	for _, listener := range l.all() {
		e.Shield(func() { listener.f(c) })
	}
}
