package measure_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestSpread(t *testing.T) {
	assert.Equal(t, measure.Spread{}, measure.SpreadOf(nil))
	assert.Equal(t, measure.Spread{Tenth: 7, Low: 7, Median: 7, High: 7}, measure.SpreadOf([]float64{7}))
	assert.Equal(t, measure.Spread{Tenth: 1.4, Low: 2, Median: 3, High: 4}, measure.SpreadOf([]float64{5, 1, 4, 2, 3}))
	assert.Equal(t, measure.Spread{Tenth: 1.3, Low: 1.75, Median: 2.5, High: 3.25}, measure.SpreadOf([]float64{4, 3, 2, 1}))
}

// Every call is made, by callers with distinct numbers, on the requested number of processors.
func TestRun(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	const callers = 3
	var calls [callers]atomic.Int64
	var stopped, wrong atomic.Int64
	var progress int
	results := measure.Run(measure.Plan{Rounds: 4, Batch: time.Millisecond, Progress: func(done, all int) {
		assert.Equal(t, 8, all)
		assert.Equal(t, progress, done)
		progress++
	}}, []measure.Case{
		{Procs: 1, Callers: callers, Calls: 1000, Start: func() measure.Work {
			return measure.Work{
				Stop: func() { stopped.Add(1) },
				Call: func(caller, n int) {
					if runtime.GOMAXPROCS(0) != 1 {
						wrong.Add(1)
					}
					calls[caller].Add(int64(n))
				},
			}
		}},
		{Call: func(_, n int) {
			for range n {
				kept = make([]byte, 100)
			}
		}},
	})
	assert.Equal(t, int64(5*1000), calls[0].Load()+calls[1].Load()+calls[2].Load(), "four rounds, and one to get warm")
	assert.Equal(t, int64(1), stopped.Load())
	assert.Zero(t, wrong.Load())
	assert.Equal(t, procs, runtime.GOMAXPROCS(0))
	assert.InDelta(t, 1, results[1].Allocs, 0.5)
	assert.InDelta(t, 112, results[1].Bytes, 50)
	for _, r := range results {
		assert.Positive(t, r.NS.Low)
		assert.LessOrEqual(t, r.NS.Low, r.NS.Median)
		assert.LessOrEqual(t, r.NS.Median, r.NS.High)
		assert.Positive(t, r.Ratio.Median)
	}
	assert.Equal(t, measure.Spread{}, measure.Beyond(results[0], results[0]))
}

var kept []byte
