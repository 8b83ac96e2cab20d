package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// mostForMatch is how long it may take to hold a name that is new against all expressions
// of a guard: ten times what the bounds of docs/rules.md come to.
const mostForMatch = 50 * ms

// expressions loads as many costly expressions as are accepted, and calls names that take
// them long. What is measured is the quickest of several calls.
func expressions(r *round) error {
	if !r.one(10) {
		return nil
	}
	g, _ := r.guard(api.Config{})
	piece := pick(r, "(.?){%d}", "(a?){%d}", "(a|aa?){%d}", "([a-z]?x?){%d}", "(.*a){%d}")
	var set rules.Set
	for i := range 40 {
		expression := fmt.Sprintf(piece, 1+r.IntN(1000)) + fmt.Sprint("end", i)
		next := append(set.Flow, flow.Rule{ID: fmt.Sprint(i), Resource: expression, Match: spec.MatchRegex, Threshold: 1})
		if g.LoadRules(rules.Set{Flow: next}) == nil {
			set.Flow = next
		}
	}
	r.offered.Add(40)
	r.step("%d of 40 expressions like %s", len(set.Flow), piece)
	best := time.Hour
	for i := range 5 {
		name := strings.Repeat(pick(r, "a", "aaax"), maxName)[:maxName-4] + fmt.Sprint("b", i)
		began := time.Now()
		e, _ := g.Entry(r.ctx, name)
		best = min(best, time.Since(began))
		e.Exit()
	}
	r.checked.Add(1)
	if best > mostForMatch {
		return fmt.Errorf("%d expressions like %s: a call of a name of %d bytes takes %v or longer", len(set.Flow), piece, maxName, best)
	}
	return nil
}
