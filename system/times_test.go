package system

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

// known bug 182: a rule whose interval has become longer begins with what the shorter one still counted, whether or not
// anybody has asked since the rest was over.
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
