package lint

import (
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// upstreams finds budgets of retries that never refuse one: another rule admits no more calls at a
// time than the retries that are always admitted.
func (l *linter) upstreams() {
	const family = "upstream"
	for i, r := range l.set.Upstream {
		if r.Mode == spec.Off || r.Retries.Least == 0 || !r.Info().Named() {
			continue
		}
		never := func(by string, j int, most float64) {
			l.add("PN029", Warning, family, i, "retries", "no retry is ever refused: %s admits %v calls at a time, and %d retries are always admitted; make least smaller", l.at(by, j), most, r.Retries.Least)
		}
		for _, j := range l.list("isolation").about(r.Resource) {
			if x := l.set.Isolation[j]; x.Mode == spec.Enforce && x.Unit == "" && !x.Shared() && x.Threshold > 0 && x.Threshold <= r.Retries.Least {
				never("isolation", j, float64(x.Threshold))
				break
			}
		}
		for _, j := range l.list("flow").about(r.Resource) {
			if x := l.set.Flow[j]; everybody(x) && x.Metric == flow.Concurrency && x.Threshold >= 1 && x.Threshold <= float64(r.Retries.Least) {
				never("flow", j, x.Threshold)
				break
			}
		}
	}
}
