package api

import (
	"cmp"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// Lint reports rules in force that can't do what they were written for, the worst first; see
// docs/lint.md. Unless [lint.Options] has Seen, the traffic so far is taken from the Guard's tree,
// so call Lint after there has been some. The rules may come from anywhere: a finding has the
// rule's index in its family, as in "flow[0]", but no position in a file.
func (g *Guard) Lint(opts lint.Options) []lint.Finding {
	if opts.Seen == nil {
		opts.Seen = seen(g.Tree())
	}
	opts.ColdFactor = cmp.Or(opts.ColdFactor, g.config.ColdFactor)
	return lint.CheckSet(g.Rules(), opts)
}

// seen returns the past calls that a tree shows.
func seen(tree inspect.Tree) *lint.Seen {
	s := &lint.Seen{Inbound: called(tree.Inbound), Rules: tree.Rules}
	for _, r := range tree.Resources {
		s.Resources = append(s.Resources, r.Name)
	}
	for _, c := range tree.Root.Children {
		if called(c) { // a name in a rule is there without calls
			s.Contexts = append(s.Contexts, c.Name)
		}
	}
	return s
}

// called reports whether a call was counted at a node.
func called(n inspect.Node) bool { return n.Lifetime.Pass+n.Lifetime.Block > 0 }

// lint logs findings in a file whose rules are in force.
func (g *Guard) lint(p rules.Parsed) {
	lint.Log(g.engine.Logger(), lint.Check(p, lint.Options{ColdFactor: g.config.ColdFactor}))
}
