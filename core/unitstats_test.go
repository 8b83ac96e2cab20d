package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
)

// Sums of units never turn negative.
func TestUnitCountsStop(t *testing.T) {
	var c core.UnitCounts
	for range 5000 {
		c = c.Plus(core.UnitCounts{Overdrawn: 1 << 53, Reserved: 1 << 40})
	}
	assert.Equal(t, core.UnitCounts{Overdrawn: 1 << 62, Reserved: 5000 << 40}, c)
}
