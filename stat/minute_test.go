package stat

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const second = int64(time.Second)

// The minute counts the same as a list of seconds, even if numbers no longer fit into 32 bits.
func TestMinuteIsItsTwin(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var m minute
		twin := make(map[int64]Counts)
		now, newest := epoch, int64(never)
		for range 200 {
			now += random.Int64N(3) * second
			if random.IntN(40) == 0 {
				now += random.Int64N(100) * second
			}
			start := now - random.Int64N(70)*second
			counts := Counts{Pass: random.Int64N(1000), RT: time.Duration(random.Int64N(1e12)), minRT: 1 + random.Int64N(1000), Exited: 1}
			if random.IntN(50) == 0 {
				counts.Block = 1 << (31 + random.IntN(4))
			}
			kept := start > newest-60*second // otherwise its slot may hold a later second
			m.add(start, &counts)
			newest = max(newest, start)
			if kept {
				sum := twin[start]
				sum.Add(&counts)
				twin[start] = sum
			}
			got := maps.Collect(m.all(now))
			want := make(map[int64]Counts)
			for start, counts := range twin {
				if start > max(now, newest)-60*second {
					want[start] = counts
					require.Equal(t, counts, m.at(now, start), "seed %d", seed)
				}
			}
			require.Equal(t, want, got, "seed %d", seed)
		}
	}
}

// The largest 32-bit numbers are kept narrow, and no number is ever truncated.
func TestMinuteWidens(t *testing.T) {
	var m minute
	most := Counts{Pass: math.MaxUint32, Exited: math.MaxUint32, minRT: math.MaxUint32, RT: math.MaxInt64 / 2}
	m.add(epoch, &most)
	require.Nil(t, m.wide)
	require.Equal(t, most, m.at(epoch, epoch))
	m.add(epoch+second, &Counts{Pass: 1})
	m.add(epoch, &Counts{Pass: 1})
	require.NotNil(t, m.wide)
	most.Pass++
	assert.Equal(t, most, m.at(epoch+second, epoch))
	assert.Equal(t, Counts{Pass: 1}, m.at(epoch+second, epoch+second))
}

// A long-lived call widens the minute and loses none of the earlier counts.
func TestMinuteWidensForLongLivedCalls(t *testing.T) {
	var m minute
	m.add(epoch, &Counts{Pass: 1})
	m.add(epoch+second, &Counts{Exited: 1, LongLived: 1})
	require.NotNil(t, m.wide)
	assert.Equal(t, Counts{Pass: 1}, m.at(epoch+second, epoch))
	assert.Equal(t, Counts{Exited: 1, LongLived: 1}, m.at(epoch+second, epoch+second))
}

func TestMinuteIsSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Bucket[narrow]{}), uintptr(48))
	assert.EqualValues(t, 10*8, unsafe.Sizeof(Counts{}), "each of its fields is in narrow too, or widens")
}

// A minute without counts takes no more memory than before, and loses nothing.
func TestCountersShrink(t *testing.T) {
	l, err := NewLayout(time.Second, 2, 2)
	require.NoError(t, err)
	look := map[string]func(c *Counters, now int64){
		"read":     func(c *Counters, now int64) { c.Second(now) },
		"searched": func(c *Counters, now int64) { c.Idle(now) },
	}
	for what, look := range look {
		t.Run(what, func(t *testing.T) {
			c := new(Counters)
			c.Init(l)
			for s := range int64(90) {
				c.AddPass(uint32(s), epoch+s*second, 1)
				c.AddComplete(uint32(s), epoch+s*second, 1, 1, false)
				c.Second(epoch + s*second)
			}
			last := epoch + 89*second
			look(c, last+59*second)
			require.EqualValues(t, 1, c.Minute(last+59*second).Pass, "its last second still counts")
			look(c, last+62*second)
			assert.True(t, c.minute.empty())
			assert.Zero(t, c.Minute(last+62*second).Pass)
			assert.EqualValues(t, 90, c.Totals().Pass)
			c.AddPass(0, last+70*second, 1)
			assert.EqualValues(t, 1, c.Minute(last+75*second).Pass)
			assert.EqualValues(t, 91, c.Totals().Pass)
		})
	}
}
