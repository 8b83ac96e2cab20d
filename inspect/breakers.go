package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
)

// The states of a breaker, the one first that calls feel most.
var severity = []string{"forcedOpen", "open", "halfOpen", "recovering", "forcedClosed"}

// breakerLabels is what stands beside the calls of a resource: the worst of the states of
// its breakers that isn't closed. Those that only rehearse don't matter to calls.
func (t Tree) breakerLabels() map[string]string {
	worst := make(map[string]int)
	for _, r := range t.Rules {
		for _, b := range r.Breakers {
			i := slices.Index(severity, b.State)
			if b.Callee != "" || b.Mode != core.Enforce || i < 0 {
				continue
			}
			if before, ok := worst[b.Resource]; !ok || i < before {
				worst[b.Resource] = i
			}
		}
	}
	labels := make(map[string]string)
	for resource, i := range worst {
		labels[resource] = "breaker " + severity[i]
	}
	return labels
}

// breakersLine tells which breakers of a rule are not closed, "" if all are.
func breakersLine(r core.RuleFigures, at time.Time) string {
	const most = 3
	var parts []string
	for _, b := range r.Breakers {
		if b.State != "closed" {
			parts = append(parts, describeBreaker(b, at))
		}
	}
	if len(parts) == 0 && r.Overflowed == 0 {
		return ""
	}
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	switch {
	case r.Kind != core.KindOutlier:
	case r.Overflowed > 0:
		parts = append([]string{fmt.Sprintf("%d callees, %d calls to others were not judged", r.Values, r.Overflowed)}, parts...)
	default:
		parts = append([]string{fmt.Sprintf("%d callees", r.Values)}, parts...)
	}
	if len(parts) == 0 { // of hotspot rules, which tell it themselves
		return ""
	}
	mode := ""
	if r.Mode == core.Shadow {
		mode = "shadow "
	}
	return fmt.Sprintf("%s%s rule %s: %s", mode, r.Kind, shown(r.ID, labelWidth), strings.Join(parts, "; "))
}

func describeBreaker(b core.BreakerFigures, at time.Time) string {
	name := shown(b.Resource, labelWidth)
	if b.Callee != "" {
		name = shown(b.Callee, labelWidth) + " of " + name
	}
	text := fmt.Sprintf("%s %s for %s", name, b.State, duration(at.Sub(b.Since)))
	switch wait := b.RetryAt.Sub(at); {
	case b.Probes > 0:
		text += fmt.Sprintf(", %d probes out", b.Probes)
	case !b.RetryAt.IsZero() && wait > 0:
		text += ", next probe in " + duration(wait)
	case b.State == "open" || b.State == "halfOpen":
		text += ", the next call is a probe"
	}
	return text
}
