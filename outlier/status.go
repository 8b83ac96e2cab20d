package outlier

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// maxShown is how many ejected callees of a rule are shown, of each resource.
const maxShown = 100

// Figures says what each rule has done, over all resources: how many callees it knows,
// to how many calls it had no place for theirs, and who is ejected.
func (t *Table) Figures() []core.RuleFigures {
	figures := t.FamilyTable.Figures()
	index := make(map[string]int)
	for i, f := range figures {
		index[f.ID] = i
	}
	t.Each(func(c *controller) { c.tell(&figures[index[c.rule.ID]]) })
	for _, f := range figures {
		slices.SortFunc(f.Breakers, func(a, b core.BreakerFigures) int {
			return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Callee, b.Callee))
		})
	}
	return figures
}

// tell adds a controller's callees to the figures of its rule.
func (c *controller) tell(f *core.RuleFigures) {
	if c.rule.Mode == core.Off {
		return
	}
	now := c.engine.Now()
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	now = c.pool.tidy(now)
	f.Values += len(c.pool.known)
	f.Overflowed += c.pool.unjudged
	shown := 0
	for x := range c.pool.outside.all() {
		if shown++; shown > maxShown {
			break
		}
		b := x.breaker.Status(now).Figures(c.rule.Mode)
		b.Rule, b.Resource, b.Callee = c.rule.ID, c.resource, x.addr
		f.Breakers = append(f.Breakers, b)
	}
}
