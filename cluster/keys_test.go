package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// After an hour of 1,000 rules and 100,000 hot values, only keys used within the last intervals
// remain, for each kind of limit. known bug 99
func TestKeysOfAnHour(t *testing.T) {
	clock := &hands{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()}
	memory := cluster.NewMemory(clock)
	ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}}
	r := rand.New(rand.NewPCG(1, 0))
	const rules, values = 1000, 100_000
	keys := make([]string, rules+values)
	for i := range keys {
		keys[i] = fmt.Sprintf("{%d}", i)
	}
	until := map[int]int64{} // when the key of a limit may expire
	use := func(i int) {
		o := store.Outcome{Key: keys[i]}
		var c store.Command
		var keeps time.Duration
		switch i % 10 {
		default:
			c, keeps = &store.Take{Outcome: o, Caller: store.Caller{Member: 1, Seq: 1}, Ring: ring, Limit: 10, Need: 1, NewEpoch: 1}, 13*ring.Shape.Width()
		case 1:
			c, keeps = &store.Turn{Outcome: o, Spacing: time.Millisecond, Need: 1}, time.Minute+time.Second
		case 2:
			c, keeps = &store.Permits{Outcome: o, Caller: store.Caller{Member: 1, Seq: 1}, Limit: 10, Need: 1, Want: 1, Expiry: 2 * time.Second}, 2*time.Second
		}
		memory.Do(t.Context(), []store.Command{c})
		if err := c.Result().Err; err != nil {
			t.Fatal(err)
		}
		until[i] = clock.now + int64(keeps)
	}
	most := 0
	for second := range 3600 {
		for range 100 {
			use(r.IntN(rules))
		}
		for range 100 { // values that are hot for some seconds
			use(rules + (second/10*281+r.IntN(300))%values)
		}
		clock.now += int64(time.Second)
		for i, at := range until {
			if at <= clock.now {
				delete(until, i)
			}
		}
		most = max(most, len(until))
		if n := memory.Keys(); n > len(until) {
			t.Fatalf("%d keys after %d s, of which %d are in use", n, second, len(until))
		}
	}
	if most < 100 {
		t.Fatalf("%d keys in use at most", most)
	}
	clock.now += int64(2 * time.Minute)
	if n := memory.Keys(); n != 0 {
		t.Fatalf("%d keys that nobody uses", n)
	}
	t.Logf("at most %d keys at once", most)
}
