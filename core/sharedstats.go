package core

import (
	"fmt"
	"time"
)

// SharedStats are the details of a rule with a limit shared by a cluster, over all resources.
type SharedStats struct {
	Members  int64 `json:"members"`        // the limit is divided by this while the store is away
	Leased   int64 `json:"leased"`         // units at hand
	Refused  int64 `json:"refusedLocally"` // calls refused without asking the store
	Requests int64 `json:"storeRequests"`
	Waited   int64 `json:"waitedForStore"` // calls
	// Store is "up", or "away" while the store doesn't respond.
	Store string `json:"store"`
	// Why is the latest error from the store while it is away, otherwise empty.
	Why string `json:"why,omitempty"`
}

// away is the value of SharedStats.Store for a store that doesn't respond.
const away = "away"

// StoreAway reports whether the store doesn't respond.
func (f SharedStats) StoreAway() bool { return f.Store == away }

// Lines returns the numbers as text.
func (f SharedStats) Lines(time.Time) []string {
	store := f.Store
	if f.Why != "" {
		store += fmt.Sprintf(" (%q)", f.Why)
	}
	return []string{fmt.Sprintf("%d members, store %s, %d units leased, %d store requests, %d calls waited for it, %d refused locally",
		f.Members, store, f.Leased, f.Requests, f.Waited, f.Refused)}
}

// Resources returns none: these numbers aren't shown beside a resource's calls.
func (f SharedStats) Resources() []ResourceDetails { return nil }
