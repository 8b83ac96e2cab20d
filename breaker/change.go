package breaker

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
)

// Change says that a breaker went from one state to another.
type Change struct {
	Rule     string // its ID
	Resource string
	From, To State
	// Value is what tripped the breaker: a share, or a number of calls. It is 1 where a probe
	// failed or was slow, 0 elsewhere.
	Value float64
	// At is when, on the engine's clock.
	At time.Time
	// Number rises with every change of this breaker. Two callers may report their changes in a
	// different order from that in which they happened.
	Number uint64

	of *terms // nil if nothing has changed
}

func (c Change) notify() {
	if c.of != nil && c.of.tell != nil {
		c.of.tell(c)
	}
}

// Listeners are told of every change of a breaker. The call or the load that caused it calls them,
// one after another and under no lock: a listener may make guarded calls, load rules, force
// breakers, and add or remove listeners. A panic in one is counted and logged like that of a slot,
// and the others are still called. The zero value has none. It is safe for concurrent use.
type Listeners struct {
	mu   shared.Mutex
	list shared.Pointer[[]*listener] // replaced as a whole
}

type listener struct{ f func(Change) }

// Add adds a listener; remove removes it again, without waiting for a call of it that is still
// running.
func (l *Listeners) Add(f func(Change)) (remove func()) {
	added := &listener{f}
	l.edit(func(list []*listener) []*listener { return append(list, added) })
	return func() {
		l.edit(func(list []*listener) []*listener {
			return slices.DeleteFunc(list, func(other *listener) bool { return other == added })
		})
	}
}

func (l *Listeners) edit(change func([]*listener) []*listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := change(slices.Clone(l.all()))
	l.list.Store(&list)
}

func (l *Listeners) all() []*listener {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// tell calls the listeners that are present when it begins.
func (l *Listeners) tell(e *engine.Engine, c Change) {
	for _, listener := range l.all() {
		e.Shield(func() { listener.f(c) })
	}
}
