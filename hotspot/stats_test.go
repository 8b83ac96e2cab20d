package hotspot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/hotspot"
)

// A rule whose calls come without the value that it limits reports that: the name may be misspelt.
func TestFiguresOfCallsWithoutTheValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "users", Resource: "orders", Param: "user", Threshold: 5},
		hotspot.Rule{ID: "second", Resource: "orders", Index: hotspot.At(1), Threshold: 5})
	lines := func(id string) []string { return g.details(id).Lines(start) }
	assert.Empty(t, lines("users"), "no call has come")
	assert.Equal(t, "pass", g.outcome())
	assert.Equal(t, []string{"no values: no recent call had param user"}, lines("users"))
	assert.Equal(t, []string{"no values: no recent call had the argument at index 1"}, lines("second"))
	assert.Equal(t, "pass", g.outcome(user("ann")))
	assert.Equal(t, []string{`1 value; hottest "ann" (1 passed, 0 refused)`}, lines("users"))
	assert.Equal(t, "pass", g.outcome(user("bob")))
	assert.Equal(t, []string{`2 values; hottest "ann" (1 passed, 0 refused), "bob" (1 passed, 0 refused)`}, lines("users"))
}
