package outlier_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/outlier"
)

// 64 callers run, some with calls that fail, get lost or are late, while the clock advances, rules
// are loaded and stats are read. At the end quiet periods bring every endpoint back.
func TestEverythingAtOnce(t *testing.T) {
	rounds := figure.Size(50, 400, 2_000, 50_000)
	if race.Enabled {
		rounds = figure.Size(20, 60, 200, 2_000)
	}
	rule, other := quick("r"), quick("slow")
	rule.MaxEndpoints, rule.ForgetAfter, rule.MinCalls, rule.Threshold = 8, 2*time.Second, 3, 0.3
	g := newGuard(t, rule, other)
	stop := make(chan struct{})
	var others, work sync.WaitGroup
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			g.clock.Advance(50 * ms)
			g.out()
			for _, f := range g.table().Stats() {
				if details, ok := f.Details.(outlier.Stats); ok { // the rule isn't off
					assert.LessOrEqual(t, details.Endpoints, 8+1000)
				}
			}
			if i%10 == 3 {
				rule.MaxEjected, rule.Mode = []float64{0.2, 0.5, 1}[i/10%3], spec.Mode(i/30%3)
				set := []outlier.Rule{rule, other}
				assert.NoError(t, g.tryLoad(set[:1+i/10%2]))
			}
		}
	})
	var passed, refused atomic.Int64
	for i := range 64 {
		work.Go(func() {
			for n := range rounds {
				addr := fmt.Sprint("c", (n+i)%6)
				if n%20 == 0 {
					addr = fmt.Sprint("x", n*64+i)
				}
				e, err := g.enter(addr)
				if err != nil {
					refused.Add(1)
					continue
				}
				passed.Add(1)
				switch {
				case (n+i)%3 == 0:
					e.Fail(errOwn)
				case (n+i)%7 == 0:
					e.Fail(core.ErrBlocked) // a neutral call
				}
				if (n+i)%50 != 0 {
					e.Exit()
				} else {
					defer e.Exit() // late
				}
			}
		})
	}
	work.Wait()
	close(stop)
	others.Wait()
	assert.Positive(t, passed.Load())
	assert.Zero(t, g.Failures())
	rule.Mode = spec.Enforce
	g.load(rule, other)
	for range 5 {
		g.clock.Advance(time.Minute)
		g.calls(strings.Repeat("c0 c1 c2 c3 c4 c5 ", 2))
	}
	assert.Empty(t, g.out())
	assert.Equal(t, "pass", g.call("c3", nil))
}
