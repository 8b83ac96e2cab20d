package main

import (
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/rules"
)

// leased makes calls under rules shared by a cluster whose only member is this process.
func leased(set rules.Set) func() func(int) {
	return func() func(int) {
		store := cluster.NewMemory(clocks.NewSystem())
		return calls{}.on(newGuard(api.Config{Cluster: cluster.Config{Store: store}}, set))
	}
}
