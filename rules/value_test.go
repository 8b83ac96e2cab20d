package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// known bug 48
func TestUnitsOfTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10000000ns": 10_000_000, "10000us": 10_000_000, "10000µs": 10_000_000, "10ms": 10_000_000, "0.01s": 10_000_000,
		"1s": 1e9, "1000ms": 1e9, "1m": 60e9, "60s": 60e9, "1h": 3600e9, "60m": 3600e9,
		"24h": 86_400e9, "1440m": 86_400e9, "86400s": 86_400e9, "86400000ms": 86_400e9, "1h30m0.5s": 5_400_500_000_000,
	} {
		set, err := Parse("r.yaml", []byte("flow: [{resource: a, threshold: 1, buckets: 1, interval: "+text+"}]"))
		require.NoError(t, err, text)
		assert.Equal(t, want, set.Flow[0].Interval, text)
	}
}
