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
	Value    float64       `json:"value"` // the value that tripped it; see breaker.Change
	Why      string        `json:"why"`
}

// timelineLength is the number of breaker changes kept, for all resources together.
const timelineLength = 1_000

// timeline holds the latest breaker changes since the server started.
type timeline struct {
	mu    sync.Mutex // guards the fields below it
	ring  []breakerChange
	total uint64 // number of changes added; the last is at (total-1) % timelineLength
}

// add records a change. It runs in the call that changes the breaker.
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

// since returns the kept changes that follow the first number changes, oldest first, and the total
// number of changes.
func (t *timeline) since(number uint64) (changes []breakerChange, total uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := t.total - uint64(len(t.ring))
	for i := max(number, oldest); i < t.total; i++ {
		changes = append(changes, t.ring[i%timelineLength])
	}
	return changes, t.total
}

// of returns the changes at one resource, or all changes for "", newest first.
func (t *timeline) of(resource string) []breakerChange {
	all, _ := t.since(0)
	all = slices.DeleteFunc(all, func(c breakerChange) bool { return resource != "" && c.Resource != resource })
	slices.Reverse(all)
	if all == nil {
		all = []breakerChange{}
	}
	return all
}

// serveBreakers lists the breakers' states and changes.
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
