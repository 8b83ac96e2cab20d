// A client of Redis that sends at most two commands a minute: the others are refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2" // the example's server
	"github.com/redis/go-redis/v9"

	penstockgoredis "github.com/penstock-go/penstock/adapters/goredis"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	rule := flow.Rule{Resource: "redis cache", Threshold: 2, Interval: time.Minute}
	if err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}); err != nil {
		log.Fatal(err)
	}
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	client.AddHook(penstockgoredis.Hook("cache"))
	for range 3 {
		if n, err := client.Incr(context.Background(), "visits").Result(); errors.Is(err, api.ErrBlocked) {
			fmt.Println("not asked")
		} else {
			fmt.Println(n, err)
		}
	}
}
