package api

import (
	"github.com/penstock-go/penstock/core"
)

// Ejected lists the endpoints to avoid on the default Guard; see [Guard.Ejected].
func Ejected(resource string) []string { return Default().Ejected(resource) }

// Ejected lists the endpoints of a resource to which outlier rules refuse calls now, sorted: a load
// balancer skips them. An endpoint that is due for a probe is not among them: the next call to it
// is the probe. While no endpoint is ejected it costs next to nothing.
//
// Other calls may come in between, so a call that then enters with [Endpoint] may still be refused
// (KindOf(err) == KindOutlier), and tries the next endpoint.
func (g *Guard) Ejected(resource string) []string {
	if t, ok := g.engine.Rules().Family(core.KindOutlier).(interface {
		Ejected(resource string, now int64) []string
	}); ok {
		return t.Ejected(resource, g.engine.Now())
	}
	return nil
}
