package outlier

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule.
type Stats struct {
	Endpoints int                   `json:"endpoints"` // tracked by the rule now
	NotJudged int64                 `json:"notJudged"` // calls to endpoints that were not tracked
	States    map[breaker.State]int `json:"states"`    // number of ejected endpoints in each state
	// Ejected is sorted by resource and endpoint, with at most a hundred of each resource. In JSON
	// they appear with their resources.
	Ejected []EndpointStatus `json:"-"`
}

// EndpointStatus is the current state of an endpoint's breaker.
type EndpointStatus struct {
	Endpoint string `json:"endpoint"`
	breaker.Status
}

// maxShown is the number of ejected endpoints shown for each resource of a rule.
const maxShown = 100

// Stats returns, over all resources, the counters of each rule, the number of endpoints it tracks,
// the calls to endpoints that it doesn't track, and the ejected endpoints.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if r.Mode == spec.Off || len(controllers) == 0 {
			return nil
		}
		f := Stats{States: make(map[breaker.State]int)}
		for _, c := range controllers {
			c.tell(&f)
		}
		slices.SortFunc(f.Ejected, func(a, b EndpointStatus) int {
			return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Endpoint, b.Endpoint))
		})
		return f
	})
}

// tell adds a controller's endpoints to the stats of its rule.
func (c *controller) tell(f *Stats) {
	now := c.engine.Now()
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	now = c.pool.tidy(now)
	f.Endpoints += len(c.pool.known)
	f.NotJudged += c.pool.unjudged
	n := 0
	for x := range c.pool.outside.all() {
		if n++; n > maxShown {
			break
		}
		s := EndpointStatus{Endpoint: x.addr, Status: x.breaker.Status(now)}
		s.Kind, s.Rule, s.Resource, s.Mode = core.KindOutlier, c.rule.ID, c.resource, c.rule.Mode
		f.Ejected = append(f.Ejected, s)
		f.States[s.State]++
	}
}

// Lines returns the ejected endpoints, and whether there are too many endpoints to track all.
func (f Stats) Lines(at time.Time) []string {
	if len(f.Ejected) == 0 && f.NotJudged == 0 {
		return nil
	}
	line := fmt.Sprintf("%d endpoints", f.Endpoints)
	if f.NotJudged > 0 {
		line += fmt.Sprintf(", %d calls to others were not tracked", f.NotJudged)
	}
	if len(f.Ejected) > 0 {
		line += "; " + shown.Few(len(f.Ejected), func(i int) string {
			s := &f.Ejected[i]
			return s.Text(shown.Label(s.Endpoint)+" of "+shown.Label(s.Resource), at)
		})
	}
	return []string{line}
}

// Resources returns the ejected endpoints, each with its resource, as [*EndpointStatus].
func (f Stats) Resources() []core.ResourceDetails {
	list := make([]core.ResourceDetails, len(f.Ejected))
	for i := range list {
		list[i] = &f.Ejected[i]
	}
	return list
}

// Mark returns none: calls to other endpoints continue.
func (s *EndpointStatus) Mark() (text string, urgency int) { return "", 0 }
