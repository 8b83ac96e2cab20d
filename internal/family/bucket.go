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

	CostScale = 1000 // times as many of both, for units of calls' costs
)

// BucketSize returns the number of units that a token bucket holds: a burst, and the unit that is
// due.
func BucketSize(burst int) int64 { return int64(burst) + 1 }

// CheckBucket checks the parameters of a token bucket. field is the key of the threshold.
// costs is true for a bucket that counts what calls cost.
func CheckBucket(field string, threshold float64, interval time.Duration, burst int, costs bool) error {
	perSecond, maxRate, maxBurst := threshold/interval.Seconds(), float64(MaxRate), int64(MaxBurst)
	if costs {
		maxRate, maxBurst = MaxRate*CostScale, MaxBurst*CostScale
	}
	switch {
	case perSecond > maxRate:
		return spec.BadField(field, "is %g per second: a token bucket refills by at most %g per second", perSecond, maxRate)
	case burst < 0 || int64(burst) > maxBurst:
		return spec.BadField("burst", "is %d: use a number from 0 to %d", burst, maxBurst)
	case burst != 0 && threshold > 0 && meter.UnitCost(interval, threshold).TimesMany(BucketSize(burst)).Endless():
		return spec.BadField("burst", "is %d: at a threshold of %g the bucket would take more than 73 years to fill; use less", burst, threshold)
	}
	return nil
}
