package stat

import (
	"math"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Every field survives a round trip with any value, including fields added in the future.
func TestPackedCounts(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 127, 1 << 40, math.MaxInt64, math.MinInt64} {
		var c, got Counts
		fields := reflect.ValueOf(&c).Elem()
		for i := range fields.NumField() {
			*(*int64)(unsafe.Pointer(fields.Field(i).UnsafeAddr())) = n + int64(i)
		}
		rest := got.Unpack(append(c.Pack([]byte{7})[1:], 8, 9))
		require.Equal(t, c, got)
		require.Equal(t, []byte{8, 9}, rest)
	}
	require.Len(t, new(Counts).Pack(nil), 10, "one byte for each zero")
}
