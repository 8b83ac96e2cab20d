package main

import (
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/rules"
)

// leased are calls under rules that a cluster shares, of which this process is the only member.
func leased(set rules.Set) func() func(int) {
	return func() func(int) {
		store := cluster.NewMemory(clocks.NewSystem())
		return calls{}.on(newGuard(api.Config{Cluster: cluster.Config{Store: store}}, set))
	}
}
