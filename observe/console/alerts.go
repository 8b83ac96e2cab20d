package console

import (
	"time"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
)

// alert is a problem shown on every page: the rules in force may not be the intended ones.
type alert struct {
	What string `json:"what"` // "source" or "store"
	// State is failed, cached (the rules are from the cache) or stale (not confirmed for a long
	// time) for a source, and away for a store.
	State string    `json:"state"`
	Name  string    `json:"name,omitempty"` // of the source
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	Rules int       `json:"rules,omitempty"` // number of rules whose store is unreachable
}

const (
	staleAfter = 10 * time.Minute // without confirmation: twice the longest pause between checks
	maxAlerts  = 20
	alertWidth = 300
)

// alerts returns the current problems with the sources of the rules, and with the store of shared
// limits. now is the machine's time, which sources use.
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

// storeAway returns the number of rules that currently decide without their store. It costs nothing if
// no rule is shared.
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

// sharing records whether rules of a revision have limits that a cluster shares.
type sharing struct {
	revision      uint64
	known, shared bool
}
