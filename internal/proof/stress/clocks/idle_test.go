package clocks

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
)

// stacks returns the stacks of all goroutines.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// Without calls nothing runs: after a burst, neither an engine nor its clock keeps a goroutine or a
// timer that would fire within an hour. known bug 31
func TestIdleEngineRunsNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clock func() clocks.Clock
	}{
		{"system", func() clocks.Clock { return clocks.NewSystem() }},
		{"coarse", func() clocks.Clock { return clocks.NewCoarse() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := api.New(api.Config{Clock: tt.clock()})
				require.NoError(t, err)
				for range 3 {
					for range 2000 { // dense enough for the coarse clock
						e, err := g.Entry(t.Context(), "orders")
						require.NoError(t, err)
						e.Exit()
					}
					time.Sleep(time.Second)
					synctest.Wait()
					assert.NotContains(t, stacks(), "penstock/core.")
					began := g.Engine().Now()
					time.Sleep(time.Hour)
					assert.Equal(t, time.Hour, time.Duration(g.Engine().Now()-began))
				}
			})
		})
	}
}
