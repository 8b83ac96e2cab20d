package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// lenders returns rules of one resource from whose coming buckets prioritized calls borrow,
// each for other callers, with such limits that two of them are used up at a time.
func lenders(r *round) (set rules.Set) {
	interval := pick(r, 400*ms, 500*ms, time.Second, 2*time.Second)
	buckets := pick(r, 2, 4, 4, 5, 10)
	for i := range 2 + r.IntN(3) {
		set.Flow = append(set.Flow, draw(func() flow.Rule {
			rule := flow.Rule{
				ID: fmt.Sprint("flow ", i), Resource: "orders", Threshold: float64(1 + r.IntN(3)), Interval: interval, Buckets: buckets,
				Origin: pick(r, flow.OriginOther, flow.OriginDefault, flow.OriginDefault, "ann"), Window: pick(r, flow.Strict, flow.Ring, flow.Ring, flow.Ring),
			}
			if r.one(4) {
				rule.Interval = pick(r, 400*ms, 500*ms, time.Second)
			}
			return rule
		}, normalizedFlow))
	}
	return set
}

// fullQueue returns rules of one resource with few permits and a queue for few, behind which
// there is a limit for what runs that is reached at about the same time.
func fullQueue(r *round) (set rules.Set) {
	permits := 1 + r.IntN(3)
	for i := range 1 + r.IntN(2) {
		set.Isolation = append(set.Isolation, isolation.Rule{
			ID: fmt.Sprint("isolation ", i), Resource: "orders", Threshold: permits + i, MaxQueue: 1 + r.IntN(3), MaxWait: pick(r, 300*ms, time.Minute),
		})
	}
	most := permits + r.IntN(2)
	set.Adaptive = []adaptive.Rule{{ID: "adaptive", Resource: "orders", Floor: most, Start: most, Ceiling: most + 1}}
	return set
}
