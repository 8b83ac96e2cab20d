package sharing

import "time"

// demand is how many units calls want, as a moving average over a horizon.
type demand struct {
	rate  float64 // units a nanosecond
	at    int64
	units int64 // wanted since at
}

// horizonOf is how far ahead a member leases: half a bucket, but from 20 ms to 1 s.
func horizonOf(width time.Duration) int64 {
	return int64(min(max(width/2, 20*time.Millisecond), time.Second))
}

// look brings the average up to now.
func (d *demand) look(now, horizon int64) {
	passed := now - d.at
	if passed < horizon/16 { // too short to tell
		return
	}
	share := float64(passed) / float64(passed+horizon)
	d.rate += (float64(d.units)/float64(passed) - d.rate) * share
	d.at, d.units = now, 0
}

// over is how many units calls will want within a time t.
func (d *demand) over(t int64) int64 { return int64(min(d.rate*float64(t)+0.5, mostUnits)) }
