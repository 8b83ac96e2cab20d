package core

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
)

// Shares holds the details of a rule that shares its limit between tenants or levels.
type Shares struct {
	Shares int `json:"shares"` // number of shares
	// Top lists the largest shares, at most a hundred: by the units that they hold and the calls that
	// wait, then by the calls served.
	Top []ShareStats `json:"top"`
	// Rest is the sum of all others, including those of tenants that were forgotten as they had no
	// calls for a while.
	Rest ShareStats `json:"rest"`
}

// ShareStats holds the numbers of one tenant's share, or of several together. The counts begin when
// the share does: a tenant without calls is forgotten if another needs the room.
type ShareStats struct {
	Resource  string  `json:"resource,omitempty"`
	Share     string  `json:"share,omitempty"` // the tenant, and with levels the level of its calls
	Weight    int64   `json:"weight"`
	Part      float64 `json:"part"`           // fair part of the limit as of now, in units; 0 without calls
	Held      int64   `json:"held"`           // units
	Rate      float64 `json:"rate,omitempty"` // fair part of a throttle's threshold as of now, in place of Part and Held
	Queued    int     `json:"queued"`
	Served    int64   `json:"served"`
	Refused   int64   `json:"refused"`   // calls that found a full queue
	Displaced int64   `json:"displaced"` // calls that lost their place to another tenant's
	Expired   int64   `json:"expired"`   // calls whose time or context ended as they waited
}

// Largest returns at most the given number of shares, and the sum of all others.
func (f Shares) Largest(most int) (top []ShareStats, rest ShareStats) {
	rest = f.Rest
	most = min(most, len(f.Top))
	for _, x := range f.Top[most:] {
		rest.Weight += x.Weight
		rest.Part += x.Part
		rest.Rate += x.Rate
		rest.Held += x.Held
		rest.Queued += x.Queued
		rest.Served += x.Served
		rest.Refused += x.Refused
		rest.Displaced += x.Displaced
		rest.Expired += x.Expired
	}
	return f.Top[:most:most], rest
}

// Lines returns a line for each of the largest shares.
func (f Shares) Lines(time.Time) (lines []string) {
	const most = 3
	for _, x := range f.Top[:min(len(f.Top), most)] {
		lines = append(lines, x.String())
	}
	switch more := f.Shares - len(lines); {
	case more == 1:
		lines = append(lines, "1 more share")
	case more > 1:
		lines = append(lines, fmt.Sprintf("%d more shares", more))
	}
	return lines
}

// String returns the numbers as text, as in "share acme: holds 33 of 33.3, 12 queued, 4021 served".
func (x ShareStats) String() string {
	text := "share " + x.Share + ": "
	switch {
	case x.Rate > 0:
		text += "rate " + shown.Number(x.Rate)
	case x.Part > 0:
		text += fmt.Sprintf("holds %d of %s", x.Held, shown.Number(x.Part))
	default:
		text += fmt.Sprintf("holds %d", x.Held)
	}
	text += fmt.Sprintf(", %d queued, %d served", x.Queued, x.Served)
	for _, c := range []struct {
		n    int64
		what string
	}{{x.Refused, "refused"}, {x.Displaced, "displaced"}, {x.Expired, "expired"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}

// Resources returns nil: shares are reported over all resources.
func (f Shares) Resources() []ResourceDetails { return nil }
