package sharing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// known bug 242: a lease that ends is returned as it was, even where the new lot takes its place in
// the ring: what is left of it goes back to its own bucket.
func TestLeaseThatEndsKeepsItsBucket(t *testing.T) {
	const bucket, second = 100, int64(1e9)
	s := newLeases(5)
	l := lot{bucket: bucket, epoch: 1, ends: second, granted: 10}
	s.grant(l, 0)
	for i := range int64(len(s.lots.ring) - 1) {
		s.grant(lot{bucket: bucket + 1 + i, epoch: 1, ends: 2 * second, granted: 1, owned: true}, 0)
	}
	l.bucket++
	_, over := s.grant(l, 1)
	require.NotNil(t, over.lot)
	assert.EqualValues(t, bucket, over.lot.bucket)
	assert.EqualValues(t, 10, over.lot.granted)
}
