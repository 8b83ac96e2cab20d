package family

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// Stats returns the stats of each rule, over all resources. Families with details use
// [Compiled.StatsWith] instead.
func (t Compiled[R, C]) Stats() []core.RuleStats {
	return t.StatsWith(func(R, []*C) core.Details { return nil })
}

// StatsWith returns the stats of each rule, with the family's own details from the function
// details. It receives the controllers of the rule made so far, sorted by resource.
func (t Compiled[R, C]) StatsWith(details func(rule R, controllers []*C) core.Details) []core.RuleStats {
	controllers := make([][]*C, len(t.rules))
	t.each(func(r *engine.Resource, c *C) {
		i := t.number(c)
		controllers[i] = append(controllers[i], c)
		if r.Entered() {
			t.records[i].Asked.Store(true)
		}
	})
	stats := make([]core.RuleStats, len(t.rules))
	for i, rule := range t.All() {
		info := rule.Info()
		stats[i] = core.RuleStats{Kind: t.kind, ID: info.ID, Resource: info.Resource, Mode: info.Mode}
		record := t.records[i]
		stats[i].Asked = record.Asked.Load() && info.Mode != spec.Off
		stats[i].Refused, stats[i].ShadowBlocked = record.Refused.Load(), record.ShadowBlocked.Load()
		stats[i].Notices = record.Notices.Load()
		slices.SortFunc(controllers[i], func(a, b *C) int { return cmp.Compare(t.about(a), t.about(b)) })
		stats[i].Details = details(rule, controllers[i])
	}
	return stats
}

// about returns the name of the resource of a controller.
func (t Compiled[R, C]) about(c *C) string {
	return t.maker.Refusal(c).Resource
}
