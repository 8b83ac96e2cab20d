package clocks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
)

// foreign is a clock that doesn't support naps.
type foreign struct{ clocks.Clock }

// A nap ends earlier but never later: a time after its end changes nothing. known bug 132
func TestNapEndsAtItsTimeAtTheLatest(t *testing.T) {
	for name, clock := range map[string]func() clocks.Clock{
		"system":  func() clocks.Clock { return clocks.NewSystem() },
		"foreign": func() clocks.Clock { return foreign{clocks.NewSystem()} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, n := clock(), clocks.MakeNap()
				now, start := c.Now(), time.Now()
				time.AfterFunc(time.Second, func() { n.WakeAt(now + int64(time.Hour)) })
				_, slept, err := n.Sleep(context.Background(), c, now, now+int64(time.Minute), func() {})
				require.NoError(t, err)
				assert.Equal(t, time.Minute, time.Since(start))
				assert.Equal(t, now+int64(time.Minute), slept)
			})
		})
	}
	t.Run("manual", func(t *testing.T) {
		c := clocks.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		c.SetSleep(clocks.SleepPark)
		n, now, slept := clocks.MakeNap(), c.Now(), make(chan int64, 1)
		go func() {
			returned, until, _ := n.Sleep(context.Background(), c, now, now+int64(time.Minute), func() {})
			slept <- until
			if returned != nil {
				returned()
			}
		}()
		c.AwaitParked(1)
		n.WakeAt(now + int64(time.Hour))
		c.Advance(time.Minute)
		require.Zero(t, c.Parked(), "its minute has passed")
		assert.Equal(t, now+int64(time.Minute), <-slept)
	})
}
