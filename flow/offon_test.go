package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// A rule that was off and is enabled again with a longer interval counts the calls that its resource
// admitted in between, even if another rule has a window of the previous shape.
// known bug 146
func TestARuleThatWasOffCountsWhatPassed(t *testing.T) {
	short := flow.Rule{ID: "r", Resource: "orders", Threshold: 2, Interval: time.Second, Buckets: 4, Window: flow.Ring}
	other := short
	other.ID, other.Threshold = "other", 100
	long := flow.Rule{ID: "r", Resource: "orders", Threshold: 6, Interval: time.Minute, Buckets: 10, Window: flow.Ring}
	off := short
	off.Mode = spec.Off
	g := newGuard(t, short, other)
	assert.Equal(t, 2, g.passes(5, "orders"))
	g.load(off, other)
	assert.Equal(t, 3, g.passes(3, "orders"))
	g.clock.Advance(10 * time.Second)
	g.load(long, other)
	assert.Equal(t, 1, g.passes(5, "orders"), "five of six passed within the minute")
}
