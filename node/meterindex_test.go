package node

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Among any number of meters, each is found, made once, and dropped if it is not wanted.
func TestManyMeters(t *testing.T) {
	n := NewStatisticNode(layout(t))
	shape := stat.Shape{Interval: time.Second, Buckets: 2}
	of := func(i int) meter.Meter { return meter.Meter{Shape: shape, Owner: i} }
	windows, semaphores := make(map[int]*stat.Window), make(map[int]*meter.Semaphore)
	check := func() {
		for i := range 300 {
			require.Same(t, windows[i], n.FindWindow(of(i)), i)
			require.Same(t, semaphores[i], n.Meters().Semaphore(fmt.Sprint(i)), i)
		}
		require.Len(t, n.Meters().Windows(), len(windows))
		require.Len(t, n.Meters().Semaphores(), len(semaphores))
	}
	for _, keeps := range []func(i int) bool{
		func(i int) bool { return true },
		func(i int) bool { return i%3 > 0 },
		func(i int) bool { return i < 20 },
		func(i int) bool { return i == 7 },
		func(i int) bool { return false },
	} {
		for i := range 200 {
			if windows[i] == nil && i%2 == 0 {
				windows[i] = n.Window(0, of(i), nil)
			}
			if semaphores[i] == nil && i%5 > 0 {
				semaphores[i] = n.NeedSemaphore(fmt.Sprint(i))
			}
			require.Same(t, windows[i], n.FindWindow(of(i)))
		}
		check()
		n.KeepMeters(func(m meter.Meter) bool { return keeps(m.Owner.(int)) }, func(owner any) bool {
			var i int
			_, err := fmt.Sscan(owner.(string), &i)
			require.NoError(t, err)
			return keeps(i)
		})
		for i := range 200 {
			if !keeps(i) {
				delete(windows, i)
				delete(semaphores, i)
			}
		}
		check()
	}
	assert.False(t, n.Metered())
}

// A reader that looks while meters are added finds each meter that existed when it began, and none
// twice.
func TestManyMetersAtOnce(t *testing.T) {
	n := NewStatisticNode(layout(t))
	shape := stat.Shape{Interval: time.Second, Buckets: 2}
	var mu sync.Mutex
	known := make(map[int]*stat.Window)
	var done sync.WaitGroup
	for k := range 4 {
		done.Go(func() {
			for i := range 500 {
				i = (i*7 + k*125) % 500
				w := n.Window(0, meter.Meter{Shape: shape, Owner: i}, nil)
				mu.Lock()
				if before := known[i]; before != nil && before != w {
					t.Errorf("two windows for %d", i)
				}
				known[i] = w
				mu.Unlock()
				if n.FindWindow(meter.Meter{Shape: shape, Owner: i}) != w {
					t.Errorf("the window for %d is not found", i)
				}
			}
		})
	}
	done.Wait()
	assert.Len(t, n.Meters().Windows(), 500)
}
