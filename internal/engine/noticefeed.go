package engine

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// OnNotice calls f with each notice of a rule, until remove is called; see api.Guard.OnNotice.
func (e *Engine) OnNotice(f func(core.Notice)) (remove func()) { return e.notices.listen(f) }

// Notice passes a notice to the listeners, soon, and to none if there is none. It must be called without
// locks of rules.
func (e *Engine) Notice(n core.Notice) { e.notices.note(n) }

// maxNotices is the number of notices that await delivery. Further ones are only counted.
const maxNotices = 1_024

// noticeFeed passes notices to listeners, as refusalFeed does with rejections: a timer calls them, so no
// call waits for a listener.
type noticeFeed struct {
	engine *Engine

	mu        shared.Mutex // guards the fields below it
	kept      []core.Notice
	missed    int64
	listeners []*func(core.Notice) // replaced as a whole
	stop      func()               // the timer; nil while there are no listeners
	closed    bool
}

func (t *noticeFeed) listen(f func(core.Notice)) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return func() {}
	}
	own := &f
	t.listeners = append(slices.Clip(t.listeners), own)
	if t.stop == nil {
		t.stop = t.engine.Every(noticePeriod, t.deliver)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if at := slices.Index(t.listeners, own); at >= 0 {
			t.listeners = slices.Delete(slices.Clone(t.listeners), at, at+1)
		}
		if len(t.listeners) == 0 && t.stop != nil {
			t.stop()
			t.stop, t.kept, t.missed = nil, nil, 0 // nobody listens
		}
	}
}

// noticePeriod is the time between deliveries.
const noticePeriod = 100 * time.Millisecond

func (t *noticeFeed) note(n core.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.listeners) == 0:
	case len(t.kept) >= maxNotices:
		t.missed++
	default:
		n.Missed, t.missed = t.missed, 0
		t.kept = append(t.kept, n)
	}
}

// deliver passes the notices to the listeners, in the order in which they came.
func (t *noticeFeed) deliver(int64) {
	t.mu.Lock()
	all, listeners := t.kept, t.listeners
	t.kept = nil
	t.mu.Unlock()
	for _, f := range listeners {
		for _, n := range all {
			t.engine.Shield(func() { (*f)(n) })
		}
	}
}

// close delivers the remaining notices, and drops the listeners. The engine's periodic tasks have ended.
func (t *noticeFeed) close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return
	}
	t.deliver(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners, t.stop, t.kept = nil, nil, nil
}
