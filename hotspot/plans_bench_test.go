package hotspot_test

import (
	"fmt"
	"testing"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// The time to load a rule with 10,000 plans, and one with as many exceptions, in the same run.
func BenchmarkReload(b *testing.B) {
	const n = 10_000
	rules := func(threshold float64) (plans, exceptions hotspot.Rule) {
		plans = hotspot.Rule{ID: "r", Resource: "orders", Param: "user", Threshold: threshold, Plans: make(map[string]float64, n)}
		exceptions = plans
		exceptions.Plans = nil
		for i := range n {
			name, limit := fmt.Sprint("name", i), threshold+float64(i)
			plans.Plans[name] = limit
			exceptions.Exceptions = append(exceptions.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(name), Threshold: limit})
		}
		return plans, exceptions
	}
	for i, name := range []string{"plans", "exceptions"} {
		b.Run(name, func(b *testing.B) {
			var all [2]hotspot.Rule
			for j := range all {
				one, other := rules(float64(j + 1))
				all[j] = []hotspot.Rule{one, other}[i]
			}
			g := newGuardWith(b, engine.Config{}, all[0])
			g.outcome(user("ann"))
			for n := 0; b.Loop(); n++ {
				g.load(all[n%2])
			}
		})
	}
}
