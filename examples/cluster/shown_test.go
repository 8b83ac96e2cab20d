package main

import (
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
)

var _ = opened

// opened is what docs/cluster.md shows.
func opened() (*api.Guard, error) {
	guard, err := api.New(api.Config{Stores: map[string]func(string) (cluster.Store, error){
		"redis": func(url string) (cluster.Store, error) { return penstockredis.Open(url) },
	}})
	return guard, err
}
