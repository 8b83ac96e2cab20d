package main

import (
	"github.com/penstock-go/penstock/api"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
)

var _ = opened

// opened is the code that docs/cluster.md shows.
func opened() (*api.Guard, error) {
	guard, err := api.New(api.Config{Stores: penstockredis.Stores()})
	return guard, err
}
