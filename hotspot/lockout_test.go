package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/hotspot"
)

// Lockouts that a reload has ended or shortened leave their places to others. known bug 301
func TestLockoutsThatAReloadEnded(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 1, MaxValues: 4, Lockout: hotspot.Lockout{After: 1, For: 24 * time.Hour}}
	none, short := rule, rule
	none.Lockout, short.Lockout.For = hotspot.Lockout{}, time.Second
	for name, reload := range map[string]func(g *guard){
		"ended": func(g *guard) {
			g.passes(2, user("b"))
			g.load(none)
			g.load(rule)
			g.passes(2, user("c"))
		},
		"shortened": func(g *guard) {
			g.load(short)
			g.passes(2, user("b"))
			g.at(time.Hour)
			g.passes(2, user("b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, rule)
			g.passes(2, user("a"))
			reload(g)
			assert.Zero(t, g.details("r").LockoutsMissed)
		})
	}
}
