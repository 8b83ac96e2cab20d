package family

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
)

// SharedFigures are the details of a rule whose limit a cluster shares, over all resources.
type SharedFigures struct {
	Members  int64 `json:"members"`        // that the limit is divided by while the store is away
	Leased   int64 `json:"leased"`         // units at hand
	Refused  int64 `json:"refusedLocally"` // calls, without asking the store
	Requests int64 `json:"storeRequests"`
	Waited   int64 `json:"waitedForStore"` // calls
	// Store is "up", or "away" while it doesn't answer.
	Store string `json:"store"`
	// Why is the latest error of the store while it is away, in the store's words; otherwise empty.
	Why string `json:"why,omitempty"`
}

// away is what SharedFigures.Store says of a store that doesn't answer.
const away = "away"

// NewSharedFigures returns the figures of a rule that has no limit yet.
func NewSharedFigures(m *cluster.Member) SharedFigures {
	return SharedFigures{Members: m.Members(), Store: "up"}
}

// StoreAway reports whether the store doesn't answer.
func (f SharedFigures) StoreAway() bool { return f.Store == away }

// Add adds the figures of one of the rule's limits.
func (f *SharedFigures) Add(l Shared) {
	x := l.figures()
	f.Leased += x.Leased
	f.Refused += x.Refused
	f.Requests += x.Requests
	f.Waited += x.Waited
	if x.Away {
		f.Store, f.Why = away, x.Why
	}
}

// Lines returns all of them as text.
func (f SharedFigures) Lines(time.Time) []string {
	store := f.Store
	if f.Why != "" {
		store += fmt.Sprintf(" (%q)", f.Why)
	}
	return []string{fmt.Sprintf("%d members, store %s, %d units leased, %d store requests, %d calls waited for it, %d refused locally",
		f.Members, store, f.Leased, f.Requests, f.Waited, f.Refused)}
}

// Resources returns none: these figures aren't shown beside a resource's calls.
func (f SharedFigures) Resources() []core.ResourceDetails { return nil }
