package family

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/meter"
)

// The bounds of a token bucket's parameters.
const (
	MaxRate  = 1e9 // units per second that fill a bucket
	MaxBurst = 1_000_000_000
)

// BucketSize returns the number of units that a token bucket holds: a burst, and the unit that is
// due.
func BucketSize(burst int) int64 { return int64(burst) + 1 }

// CheckBucket checks the parameters of a token bucket. field is the key of the threshold.
func CheckBucket(field string, threshold float64, interval time.Duration, burst int) error {
	perSecond := threshold / interval.Seconds()
	switch {
	case perSecond > MaxRate:
		return spec.BadField(field, "is %g per second: a token bucket refills by at most %g per second", perSecond, float64(MaxRate))
	case burst < 0 || burst > MaxBurst:
		return spec.BadField("burst", "is %d: use a number from 0 to %d", burst, MaxBurst)
	case burst != 0 && threshold > 0 && meter.UnitCost(interval, threshold).Times(BucketSize(burst)).Endless():
		return spec.BadField("burst", "is %d: at a threshold of %g the bucket would take more than 73 years to fill; use less", burst, threshold)
	}
	return nil
}
