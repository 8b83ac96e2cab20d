package main

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// mostUnderWay is how many steps of an expression may be under way at once, in the mean over
// the longest name. docs/rules.md says so.
const mostUnderWay = 256

// expressions loads as many costly expressions as are accepted, and calls names that keep many
// of their steps under way. They are counted by hand, by the textbook's way to match.
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
	name := strings.Repeat(pick(r, "a", "aaax"), maxName)[:maxName-4] + "b"
	e, _ := g.Entry(r.ctx, name)
	e.Exit()
	for _, rule := range set.Flow {
		n, err := underWay(rule.Resource, name)
		if err != nil {
			return err
		}
		r.checked.Add(1)
		if n > mostUnderWay*len(name) {
			return fmt.Errorf("%q is accepted, and has %d steps under way at once, in the mean over a name of %d bytes", rule.Resource, n/len(name), len(name))
		}
	}
	return nil
}

// underWay is how many steps of an expression are under way at the characters of a name,
// added up: the sizes of the sets of K. Thompson, Regular Expression Search Algorithm (1968).
func underWay(expression, name string) (all int, err error) {
	parsed, err := syntax.Parse("^(?s:"+expression+")$", syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	t := thompson{prog: prog, seen: make([]int, len(prog.Inst))}
	now := t.follow(nil, uint32(prog.Start), 0)
	for at, char := range name {
		all += len(now)
		var next []uint32
		for _, pc := range now {
			if in := &prog.Inst[pc]; in.MatchRune(char) {
				next = t.follow(next, in.Out, at+1)
			}
		}
		now = next
	}
	return all, nil
}

type thompson struct {
	prog *syntax.Prog
	seen []int // by instruction, one more than where it was last reached
}

// follow appends the instructions for a character that are reached before the next one.
func (t *thompson) follow(list []uint32, pc uint32, at int) []uint32 {
	if t.seen[pc] == at+1 {
		return list
	}
	t.seen[pc] = at + 1
	in := &t.prog.Inst[pc]
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return t.follow(t.follow(list, in.Out, at), in.Arg, at)
	case syntax.InstCapture, syntax.InstNop:
		return t.follow(list, in.Out, at)
	case syntax.InstEmptyWidth:
		if at == 0 || syntax.EmptyOp(in.Arg)&syntax.EmptyBeginText == 0 {
			return t.follow(list, in.Out, at)
		}
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return append(list, pc)
	}
	return list
}
