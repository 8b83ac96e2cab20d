package console

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/breaker"
)

// breakerChange is a change of a breaker's state.
type breakerChange struct {
	At       time.Time     `json:"at"`
	Rule     string        `json:"rule"`
	Resource string        `json:"resource"`
	From     breaker.State `json:"from"`
	To       breaker.State `json:"to"`
	Value    float64       `json:"value"` // what tripped it, see breaker.Change
	Why      string        `json:"why"`
}

// timelineLength is how many changes of breakers are kept, of all resources together.
const timelineLength = 1_000

// timeline is the last changes of breakers since the server began.
type timeline struct {
	mu    sync.Mutex
	ring  []breakerChange
	total uint64 // so many were added; the last is at (total-1) % timelineLength
}

// add notes a change. The call that changes the breaker calls it.
func (t *timeline) add(c breaker.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := breakerChange{c.At.UTC(), c.Rule, c.Resource, c.From, c.To, c.Value, c.Why()}
	if len(t.ring) < timelineLength {
		t.ring = append(t.ring, one)
	} else {
		t.ring[t.total%timelineLength] = one
	}
	t.total++
}

// since returns the changes after the first number ones, oldest first, as far as they are kept, and how
// many there were in all.
func (t *timeline) since(number uint64) (changes []breakerChange, total uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := t.total - uint64(len(t.ring))
	for i := max(number, oldest); i < t.total; i++ {
		changes = append(changes, t.ring[i%timelineLength])
	}
	return changes, t.total
}

// of are the changes at one resource, or with "" all, the newest first.
func (t *timeline) of(resource string) []breakerChange {
	all, _ := t.since(0)
	all = slices.DeleteFunc(all, func(c breakerChange) bool { return resource != "" && c.Resource != resource })
	slices.Reverse(all)
	if all == nil {
		all = []breakerChange{}
	}
	return all
}

// serveBreakers lists what breakers do, and what they did.
func (c *console) serveBreakers(w http.ResponseWriter, _ *http.Request) error {
	return c.reply(w, func() (any, error) {
		c.making.Lock()
		defer c.making.Unlock()
		status := c.guard.Breakers()
		if status == nil {
			status = []breakerStatus{}
		}
		return struct {
			At       time.Time       `json:"at"`
			Breakers []breakerStatus `json:"breakers"`
			Changes  []breakerChange `json:"changes"`
		}{c.reader().at(), status, c.changes.of("")}, nil
	})
}
