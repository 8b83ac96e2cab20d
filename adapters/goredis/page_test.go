package penstockgoredis_test

import (
	"github.com/redis/go-redis/v9"

	penstockgoredis "github.com/penstock-go/penstock/adapters/goredis"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown(client *redis.Client) error {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "redis cache", Threshold: 10}}}) // a second

	client.AddHook(penstockgoredis.Hook("cache"))
	return err
}
