package console

import (
	"time"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
)

// alert is something that every page shows: what is in force may not be what was meant to be.
type alert struct {
	What string `json:"what"` // "source" or "store"
	// State of a source is failed, cached (its rules are from the cache) or stale (it has
	// not been seen for long); that of a store is away.
	State string    `json:"state"`
	Name  string    `json:"name,omitempty"` // of the source
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	Rules int       `json:"rules,omitempty"` // whose store is away
}

const (
	staleAfter = 10 * time.Minute // without having been seen: twice as long as the longest pause between looks
	maxAlerts  = 20
	alertWidth = 300
)

// alerts are what is wrong at the moment with the sources of the rules, and with the store of shared
// limits. now is the machine's time, by which sources are watched.
func (c *console) alerts(now time.Time) []alert {
	var all []alert
	for _, s := range c.guard.Status().Sources {
		if one, ok := alertOf(s, now); ok && len(all) < maxAlerts {
			all = append(all, one)
		}
	}
	if away := c.storeAway(); away > 0 {
		all = append(all, alert{What: "store", State: "away", Rules: away})
	}
	return all
}

func alertOf(s rules.Status, now time.Time) (a alert, is bool) {
	a = alert{What: "source", Name: shown.Name(s.Source, alertWidth)}
	switch {
	case !s.OK:
		a.State, a.Since = "failed", s.LastFailure.UTC()
		if s.LastError != nil {
			a.Error = shown.Name(s.LastError.Error(), alertWidth)
		}
	case !s.Cached.IsZero():
		a.State, a.Since = "cached", s.Cached.UTC()
	case s.Watching && !s.Confirmed.IsZero() && now.Sub(s.Confirmed) > staleAfter:
		a.State, a.Since = "stale", s.Confirmed.UTC()
	default:
		return a, false
	}
	return a, true
}

// storeAway is how many rules do without their store. Where no rule is shared, that costs nothing.
func (c *console) storeAway() (n int) {
	if revision := c.guard.Engine().Rules().Revision; c.sharing.revision != revision || !c.sharing.known {
		c.sharing = sharing{revision, true, c.guard.Rules().Shared()}
	}
	if !c.sharing.shared {
		return 0
	}
	for _, f := range c.guard.RuleStats() {
		if shared, ok := f.Details.(interface{ StoreAway() bool }); ok && shared.StoreAway() {
			n++
		}
	}
	return n
}

// sharing is whether rules of a revision have limits that a cluster shares.
type sharing struct {
	revision      uint64
	known, shared bool
}
