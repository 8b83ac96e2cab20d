package system

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

// A rule whose interval gets longer starts with the counts that the shorter one still had, whether
// or not a call has asked since the others expired.
// known bug 182
func TestResponseTimesOfALongerInterval(t *testing.T) {
	for _, asked := range []bool{false, true} {
		old := newTimes(stat.Shape{Interval: time.Second, Buckets: 2})
		old.add(0, 500)
		now := int64(5 * time.Second)
		if asked {
			old.mean(now)
		}
		longer := newTimes(stat.Shape{Interval: time.Minute, Buckets: 10})
		longer.seedFrom(old, now)
		assert.Zero(t, longer.mean(now), "asked before: %v", asked)
	}
}
