//go:build sim

package engines

import (
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// A call fails fast and ends while its breaker's rule changes from failures to slow calls. Neither
// rule has enough evidence to open the breaker: under the old one too few calls failed, under the
// new one none was slow. known bug 66
func TestSimTermsChangeAsACallEnds(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		load := func(r breaker.Rule) {
			r.ID, r.Resource, r.Threshold = "b", "orders", 1
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
				return breaker.Compile(b, []breaker.Rule{r})
			}); err != nil {
				s.Failf("%v", err)
			}
		}
		load(breaker.Rule{MinCalls: 10})
		e.Rules().Family(core.KindBreaker).(interface {
			Listen(func(breaker.Change)) func()
		}).Listen(func(c breaker.Change) {
			s.Failf("no call was slow, but the breaker is %v, by %v", c.To, c.Value)
		})
		s.Go(func() {
			entry, err := e.Enter(t.Context(), "orders", nil)
			if err != nil {
				s.Failf("%v", err)
			}
			entry.Fail(errors.New("down"))
			entry.Exit()
		})
		s.Named("rules", func() {
			load(breaker.Rule{Strategy: breaker.SlowRatio, SlowRT: time.Hour, MinCalls: 1})
		})
	})
}
