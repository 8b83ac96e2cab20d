package replay

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/penstock-go/penstock/proof/figure"
)

var drawn = flag.Int("drawn", 0, "how many traces are drawn; 0 means 100, or what FIGURES says")

// known bug 125: whatever rules meet, a call gets what is promised. A failure names its seed, and
//
//	go test -run TestDrawn/17 ./proof/replay
//
// makes it again.
func TestDrawn(t *testing.T) {
	n := *drawn
	if n == 0 {
		n = figure.Size(100, 100, 1000, 100_000)
	}
	var wrong atomic.Int64
	t.Cleanup(func() {
		figure.Report(t, figure.Figure{Name: "drawn traces in which a call is not as promised", Value: float64(wrong.Load()), N: int64(n)})
	})
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			outcome := Replay(Draw(seed), nil)
			if outcome.Failure != nil {
				wrong.Add(1)
				t.Error(outcome.Failure)
			}
		})
	}
}
