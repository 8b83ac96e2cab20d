package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

// limits compares the admitted calls with the most that any of the rule sets allowed.
func (s *storm) limits() error {
	var all []stormEntry
	for _, of := range s.entered {
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b stormEntry) int { return int(a.before - b.before) })
	for _, name := range resources {
		if err := s.inFlight(name, all); err != nil {
			return err
		}
	}
	return s.inIntervals(all)
}

// inFlight checks concurrency rules on a resource that were in effect for the whole storm. A call
// was certainly in flight between after and ended.
func (s *storm) inFlight(name string, all []stormEntry) error {
	most, ok := s.mostAtOnce(name)
	if !ok {
		return nil
	}
	type change struct{ at, units int64 }
	var changes []change
	for _, e := range all {
		if e.resource == name && e.after < e.ended {
			changes = append(changes, change{e.after, e.units}, change{e.ended, -e.units})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.units - b.units)
	})
	now := int64(0)
	for _, c := range changes {
		if now += c.units; now > most {
			return fmt.Errorf("%d units of %s in flight, at most %d allowed", now, name, most)
		}
	}
	s.checked.Add(int64(len(changes)))
	return nil
}

// mostAtOnce returns the most units of a resource that some enforced rule allowed at any time, or
// false if at some time there was no such rule, or a queue's rule stopped being enforced: then all
// queued calls run, and the other rules have decided on them before.
func (s *storm) mostAtOnce(name string) (most int64, ok bool) {
	queues := make(map[string]bool) // rules that have had a queue
	for _, set := range s.sets {
		for id := range queues {
			goesOn := func(r isolation.Rule) bool {
				return r.ID == id && r.Mode == spec.Enforce && about(r.Resource, r.Match)(name)
			}
			if !slices.ContainsFunc(set.Isolation, goesOn) {
				return 0, false
			}
		}
		for _, r := range set.Isolation {
			if r.MaxQueue > 0 && r.Mode == spec.Enforce && about(r.Resource, r.Match)(name) {
				queues[r.ID] = true
			}
		}
		limit := int64(-1)
		lower := func(mode spec.Mode, resource string, match spec.Match, n int64) {
			if mode == spec.Enforce && about(resource, match)(name) && (limit < 0 || n < limit) {
				limit = n
			}
		}
		for _, rule := range set.Flow {
			if rule.Metric == flow.Concurrency && rule.Relation == flow.Direct && rule.Origin == flow.OriginDefault {
				lower(rule.Mode, rule.Resource, rule.Match, int64(rule.Threshold))
			}
		}
		for _, rule := range set.Isolation {
			lower(rule.Mode, rule.Resource, rule.Match, int64(rule.Threshold))
		}
		if limit < 0 {
			return 0, false
		}
		most = max(most, limit)
	}
	return most, true
}

// inIntervals checks rules that were in effect for the whole storm with at least one shape: in each
// real interval for which they promise a limit, the most of all thresholds.
func (s *storm) inIntervals(all []stormEntry) error {
	for _, first := range s.sets[0].Flow {
		span, most, ok := s.boundOf(first.ID)
		if !ok {
			continue
		}
		here := about(first.Resource, first.Match)
		for _, name := range resources {
			if !here(name) {
				continue
			}
			var of []stormEntry
			for _, e := range all {
				if e.resource == name && !e.prioritized {
					of = append(of, e)
				}
			}
			for i := range of {
				sum := int64(0)
				for j := i; j < len(of) && of[j].before < of[i].before+span; j++ {
					if of[j].after < of[i].before+span { // certainly decided in this interval
						sum += of[j].units
					}
				}
				s.checked.Add(1)
				if sum > most {
					return fmt.Errorf("flow rule %q admitted %d units of %s within %v, but never allowed more than %d",
						first.ID, sum, name, time.Duration(span), most)
				}
			}
		}
	}
	return nil
}

// boundOf returns the shortest real interval for which a rule promised a limit, and the highest
// limit that it promised, or false if it wasn't in effect all the time.
func (s *storm) boundOf(id string) (span, most int64, ok bool) {
	rate, burst, buckets := 0.0, int64(0), 0
	for _, set := range s.sets {
		i := slices.IndexFunc(set.Flow, func(rule flow.Rule) bool { return rule.ID == id })
		if i < 0 {
			return 0, 0, false
		}
		rule := set.Flow[i]
		if rule.Mode != spec.Enforce || rule.Metric != flow.QPS || rule.Relation != flow.Direct || rule.Origin != flow.OriginDefault ||
			rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle {
			return 0, 0, false
		}
		if rule.Behavior == flow.TokenBucket {
			rate, burst = max(rate, rule.Threshold/float64(rule.Interval)), max(burst, int64(rule.Burst))
			buckets++
			continue
		}
		promised := int64(rule.Interval)
		if rule.Window == flow.Ring {
			promised -= int64(rule.Interval) / int64(rule.Buckets)
		}
		if promised == 0 { // of a single bucket: twice the limit may pass at once
			return 0, 0, false
		}
		if span == 0 || promised < span {
			span = promised
		}
		most = max(most, int64(rule.Threshold))
	}
	switch buckets {
	case 0:
		return span, most, true
	case len(s.sets): // at the highest rate all the time, with the largest burst
		span = int64(100 * ms)
		return span, burst + int64(math.Ceil(rate*float64(span))), true
	}
	return 0, 0, false // a window's units, and those of a bucket before or after it
}

// counts compares the tree with the callers' own counts.
func (s *storm) counts() error {
	var pass, block, complete int64
	for _, n := range s.guard.Tree().Resources {
		pass, block, complete = pass+n.Lifetime.Pass, block+n.Lifetime.Block, complete+n.Lifetime.Complete
	}
	s.checked.Add(3)
	if pass != s.passed.Load() || block != s.refused.Load() || complete != s.left.Load() {
		return fmt.Errorf("the tree shows %d units passed, %d refused and %d completed; the callers counted %d, %d and %d",
			pass, block, complete, s.passed.Load(), s.refused.Load(), s.left.Load())
	}
	return nil
}
