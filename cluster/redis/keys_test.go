package penstockredis_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

var keysFor = flag.Duration("keys.for", 0, "how long TestHotKeysExpire runs; 0 means 300 rounds")

// With 1,000 rules and ever new hot values, a server holds only keys used within the last
// intervals. `make cluster-exact` runs it for a minute. known bug 99
func TestHotKeysExpire(t *testing.T) {
	client := patient(t, start(t))
	st := penstockredis.Patient(client)
	ring := store.Ring{Shape: stat.Shape{Interval: 200 * time.Millisecond, Buckets: 2}}
	lives := 5 * ring.Shape.Width() // after the last use
	seq, value, most := int64(0), 0, int64(0)
	for begin, round := time.Now(), 0; round < 300 || time.Since(begin) < *keysFor; round++ {
		batch := make([]store.Command, 0, 64)
		for i := range 64 {
			seq++
			key := fmt.Sprintf("{rule %d}", seq%1000)
			if i%2 == 0 {
				value++
				key = fmt.Sprintf("{value %d}", value)
			}
			batch = append(batch, &store.Take{
				Outcome: store.Outcome{Key: key}, Caller: store.Caller{Member: 1, Seq: seq}, Ring: ring, Limit: 1000, Need: 1, NewEpoch: seq,
			})
		}
		st.Do(t.Context(), batch)
		for _, c := range batch {
			require.NoError(t, c.Result().Err)
		}
		most = max(most, client.DBSize(t.Context()).Val())
	}
	for _, key := range client.Keys(t.Context(), "*").Val() {
		require.LessOrEqual(t, client.PTTL(t.Context(), key).Val(), lives, key)
	}
	require.Eventually(t, func() bool { return client.DBSize(t.Context()).Val() == 0 }, patience, 10*time.Millisecond)
	t.Logf("%d values and 1000 rules, at most %d keys at once", value, most)
}

// A key moved to a server whose clock is behind brings its remaining life along. Used there, it
// lives as long as any other key: its units still count.
func TestKeyThatMovedToAClockBehindLivesOn(t *testing.T) {
	client := patient(t, start(t))
	st := penstockredis.Offset(client)
	ring := store.Ring{Shape: stat.Shape{Interval: 100 * time.Second, Buckets: 5}}
	seq := int64(0)
	take := func() {
		seq++
		c := &store.Take{
			Outcome: store.Outcome{Key: "{orders}"}, Caller: store.Caller{Member: 1, Seq: seq}, Ring: ring, Limit: 10, Need: 1, NewEpoch: 1,
		}
		st.Do(t.Context(), []store.Command{c})
		require.NoError(t, c.Err)
	}
	take()
	require.NoError(t, client.Set(t.Context(), penstockredis.ClockKey, (-4*ring.Shape.Width()).Microseconds(), 0).Err())
	require.True(t, client.PExpire(t.Context(), "{orders}", time.Minute).Val())
	take()
	require.Greater(t, client.PTTL(t.Context(), "{orders}").Val(), 7*ring.Shape.Width())
}
