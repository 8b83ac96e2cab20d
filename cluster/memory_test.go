package cluster_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/cluster/storetest"
)

// hands is a clock that a test sets, also backwards.
type hands struct{ now int64 }

func (h *hands) Now() int64 { return h.now }

// known bug 52, known bug 159, known bug 160, known bug 174, known bug 214, known bug 215, known bug 220
func TestMemoryIsAStore(t *testing.T) {
	var clock *hands
	storetest.Run(t, storetest.Config{
		New: func(testing.TB) store.Store {
			clock = &hands{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()}
			return cluster.NewMemory(clock)
		},
		Advance: func(d time.Duration) { clock.now += int64(d) },
	})
}
