package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
)

// outliers makes some of several endpoints fail.
func outliers(r *round) error {
	g, clock := r.guard(api.Config{})
	rule := draw(func() outlier.Rule {
		rule := drawOutlier(r, "outlier")
		rule.Mode, rule.Resource, rule.Match = spec.Enforce, "orders", spec.MatchExact
		return rule
	}, outlier.Rule.Normalized)
	if err := g.LoadRules(rules.Set{Outlier: []outlier.Rule{rule}}); err != nil {
		return err
	}
	r.step("%+v", rule)
	chosen := make(map[string]int64)
	n := 1 + r.IntN(rule.MaxEndpoints)
	n = min(n, 12)
	for range 300 {
		if r.one(4) {
			clock.Advance(r.between(0, pick(r, ms, rule.Interval, rule.Recovery, rule.ForgetAfter)))
		}
		k := r.IntN(n)
		endpoint := fmt.Sprintf("10.0.0.%d", k)
		ejected := g.Ejected("orders")
		e, err := g.Entry(r.ctx, "orders", api.Endpoint(endpoint))
		chosen[endpoint] = clock.Now()
		r.offered.Add(1)
		r.checked.Add(2)
		if slices.Contains(ejected, endpoint) && err == nil {
			return fmt.Errorf("%s is reported as ejected, but gets a call", endpoint)
		}
		if k%3 != 0 || r.one(10) {
			e.Fail(errBroken)
		}
		e.Exit()
		now := g.Ejected("orders")
		known, out := 0, len(now)
		for endpoint, at := range chosen {
			// An ejected endpoint stays known for some time after its ejection was due to end. So does
			// one that was readmitted because others were dropped, as if it had been chosen then.
			if slices.Contains(now, endpoint) {
				chosen[endpoint] = clock.Now()
			}
			if clock.Now()-at <= int64(2*rule.ForgetAfter+rule.Recovery+rule.ProbeTimeout) {
				known++
			}
		}
		r.step("%v: %s: %v; %d of %d are out", time.Duration(clock.Now()-start.UnixNano()), endpoint, err, out, known)
		if out > 0 && (out >= known || float64(out)/float64(known) > rule.MaxEjected) {
			return fmt.Errorf("%d of %d endpoints are ejected, but at most %v may be", out, known, rule.MaxEjected)
		}
	}
	return nil
}
