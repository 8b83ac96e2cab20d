package main

import "github.com/penstock-go/penstock/node"

// contended makes the same calls after processors have contended for their counters, so that these
// lend to lanes.
func (c calls) contended() func(int) {
	g := c.guard()
	run := c.on(g)
	run(1) // creates the nodes
	e := g.Engine()
	r, _ := e.FindResource(hot)
	for _, n := range []*node.StatisticNode{&r.StatisticNode, &e.Tree().Inbound().StatisticNode} {
		for _, w := range n.Meters().Windows() {
			w.Contended()
		}
		for _, s := range n.Meters().Semaphores() {
			s.Contended()
		}
	}
	return run
}
