package reload

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
)

// believed is the shortest time that half a file must lie still before it may count as a whole one.
// A burst in which a writer was held up that long between two halves proves nothing.
const believed = 50 * time.Millisecond

// The rule files of many Guards are rewritten in every way, in bursts, under constant calls. Every
// decision uses one whole set, no caller ever finds no rules, and the last version of each burst
// takes effect, which shows that the watcher is alive. known bug 67, 68, 69, 73
func TestRewritesUnderLoad(t *testing.T) {
	const perBurst = 10
	random := random(t)
	bursts := figure.Size(1, 2, 34, 125) // a few may prove nothing: with figures, 10,000 do
	sites := newSites(t, figure.Size(8, 16, 32, 32))
	stop := readers(t, sites)
	var mu sync.Mutex
	var running sync.WaitGroup
	var took []time.Duration
	rewrites, torn, slow := 0, 0, 0
	for k, s := range sites {
		order := random.Perm(bursts * perBurst)
		running.Go(func() {
			for b := range bursts {
				s.round.Store(int64(b))
				heldUp := false
				var end time.Time
				for i := range perBurst {
					n := int64(b*perBurst + i + 1)
					way := ways[(order[n-1]+k)%len(ways)]
					begun := time.Now()
					if err := way.rewrite(s.path, version(n)); err != nil {
						t.Errorf("%s: %v", way.name, err)
						return
					}
					end = time.Now()
					heldUp = heldUp || way.halves && end.Sub(begun) >= believed
				}
				err := s.await(int64((b + 1) * perBurst))
				mu.Lock()
				took = append(took, time.Since(end))
				rewrites += perBurst
				if heldUp {
					slow += perBurst
				}
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				s.mu.Lock()
				what, bad := s.torn[int64(b)]
				s.mu.Unlock()
				if bad && !heldUp {
					mu.Lock()
					torn++
					mu.Unlock()
					t.Errorf("site %d, burst %d: a decision under parts of two sets: %s", k, b, what)
				}
			}
		})
	}
	running.Wait()
	stop()
	figure.Report(t, figure.Figure{Name: "torn rule reads, rewrites under load", Value: float64(torn), N: int64(rewrites - slow), Seed: *seed})
	if slow > 0 {
		t.Logf("%d of %d rewrites prove nothing: their writer was held up", slow, rewrites)
	}
	t.Logf("from file to decision: p50 %v, p99 %v of %d", percentile(took, 50), percentile(took, 99), len(took))
}

func percentile(values []time.Duration, p int) time.Duration {
	slices.Sort(values)
	return values[min(len(values)*p/100, len(values)-1)]
}

// Every rewrite in each of the ways is noticed within a fifth of a second on an otherwise idle
// machine.
func TestFromFileToDecision(t *testing.T) {
	sites := newSites(t, len(ways))
	stop := readers(t, sites)
	defer stop()
	var running sync.WaitGroup
	times := figure.Size(2, 4, 50, 200)
	errs, took := make([]error, len(ways)), make([]time.Duration, len(ways)*times)
	for i, way := range ways {
		running.Go(func() {
			for n := range times {
				err := way.rewrite(sites[i].path, version(int64(n+1)))
				end := time.Now()
				err = errors.Join(err, sites[i].await(int64(n+1)))
				took[i*times+n] = time.Since(end)
				if errs[i] = err; err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	for i, way := range ways {
		require.NoError(t, errs[i], way.name)
		t.Logf("%s: p50 %v, most %v", way.name, percentile(took[i*times:(i+1)*times], 50), percentile(took[i*times:(i+1)*times], 100))
	}
	p99 := percentile(took, 99)
	t.Logf("all: p50 %v, p99 %v", percentile(took, 50), p99)
	if figure.Size(0, 0, 1, 1) == 1 {
		figure.Report(t, figure.Figure{Name: "from file to decision, p99", Value: float64(p99.Milliseconds()), Unit: "ms", AtMost: 200, N: int64(len(took)), Seed: *seed})
	}
}
