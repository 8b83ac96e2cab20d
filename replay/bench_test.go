package replay_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/replay"
)

// A call of 20 ms under one rule.
func BenchmarkPlay(b *testing.B) {
	set := api.RuleSet{Flow: []flow.Rule{{ID: "a", Resource: "GET /a", Threshold: 900}}}
	clients := make([]string, 1000)
	for i := range clients {
		clients[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	_, err := replay.Play(set, func(yield func(replay.Call) bool) {
		for i := 0; b.Loop(); i++ {
			at := start.Add(time.Duration(i) * time.Millisecond)
			if !yield(replay.Call{At: at, Took: 20 * time.Millisecond, Resource: "GET /a", Client: clients[i%1000]}) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
}
