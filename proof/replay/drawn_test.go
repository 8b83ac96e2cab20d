package replay

import (
	"flag"
	"fmt"
	"testing"
)

var drawn = flag.Int("drawn", 300, "how many traces are drawn")

// known bug 125: whatever rules meet, a call gets what is promised. A failure names its seed, and
//
//	go test -run TestDrawn/17 ./proof/replay
//
// makes it again.
func TestDrawn(t *testing.T) {
	for seed := range uint64(*drawn) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			outcome := Replay(Draw(seed), nil)
			if outcome.Failure != nil {
				t.Error(outcome.Failure)
			}
		})
	}
}
