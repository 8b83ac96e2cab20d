package replay_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/replay"
)

// A limit of ten a second admits a client that asks every 200 ms, but not its burst.
func ExamplePlay() {
	set, err := api.ParseRules("rules.yaml", []byte(`
hotspot:
  - {id: users, resource: "GET /orders", param: ip, threshold: 10}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	calls := func(yield func(replay.Call) bool) {
		for i := range 65 {
			at := begin.Add(time.Duration(i) * 200 * time.Millisecond)
			if i >= 50 {
				at = begin.Add(time.Minute)
			}
			call := replay.Call{
				At: at, Resource: "GET /orders", Client: "192.0.2.1",
				Params: []replay.Param{{Name: "ip", Value: "192.0.2.1"}},
			}
			if !yield(call) {
				return
			}
		}
	}
	report, err := replay.Play(set, calls)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Rules {
		fmt.Printf("%s %s refused %d of %d calls, at worst %d in the second of %s\n",
			r.Kind, r.ID, r.Refused, r.Offered, r.Worst.Refused, r.Worst.At.Format(time.TimeOnly))
	}
	// Output: hotspot users refused 5 of 65 calls, at worst 5 in the second of 12:01:00
}
