package meter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A bucket whose calls give back what they didn't use is as full as one replayed with what they used:
// exactly, until more takes overlap than it remembers; then it is less full, never fuller. The units
// are also charged beyond the bucket's size, and their cost changes.
func TestRefundsAreTheReplay(t *testing.T) {
	r := random(t)
	type taken struct {
		at   int64
		take int64
		n    int64
	}
	fuller, same := 0, 0
	for range rounds(3000) {
		size := 1 + r.Int64N(200)
		b, f, unit := MakeTokenBucket(), new(Refunds), Moment{ns: 1 + r.Int64N(1000), frac: r.Uint32()}
		b.SetUnit(epoch, unit)
		overlap := 2 + r.IntN(30)
		var log []*taken
		var open []*taken
		joined := false
		now := int64(epoch)
		for range 200 {
			if r.IntN(2) == 0 {
				now += r.Int64N(max(1, size*unit.ns>>r.IntN(8)))
			}
			switch {
			case len(open) < overlap && r.IntN(5) > 0:
				n, full := r.Int64N(size>>r.IntN(6)+1), f.n == len(f.kept)
				at := max(now, b.seen)
				if r.IntN(10) == 0 {
					take := f.takes + 1
					if n := b.Charge(f, now, r.Int64N(3*size), 2*size); f.takes == take {
						log = append(log, &taken{at, take, n})
						joined = joined || full
					}
				} else if take, ok := b.TakeFor(f, now, n, size); ok {
					c := &taken{at, take, n}
					log, open = append(log, c), append(open, c)
					joined = joined || full && f.n == len(f.kept)
				}
			case len(open) > 0:
				i := r.IntN(len(open))
				c := open[i]
				open = append(open[:i], open[i+1:]...)
				back := r.Int64N(c.n + 1)
				b.Refund(f, c.take, back)
				c.n -= back
			}
			tat := LongAgo()
			for _, c := range log {
				tat = tat.orNow(c.at).plus(unit.Times(c.n))
			}
			got, want := b.tat.orNow(now), tat.orNow(now)
			require.False(t, got.before(want), "fuller than the replay")
			if !joined {
				require.Equal(t, want, got)
			}
			if same++; want.before(got) {
				fuller++
			}
			for i := 1; i < f.n; i++ {
				require.True(t, f.kept[i-1].missing.before(f.kept[i].missing), "the order of the stack")
			}
		}
	}
	require.Less(t, float64(fuller), 0.2*float64(same))
	t.Logf("%d of %d times less full than the replay", fuller, same)
}

// A change of the cost keeps the number of missing units, and no refund is larger for it.
func TestRefundsAtAnotherRate(t *testing.T) {
	b, f := MakeTokenBucket(), new(Refunds)
	b.SetUnitFor(f, epoch, Moment{ns: 10})
	first, ok := b.TakeFor(f, epoch, 50, 100)
	require.True(t, ok)
	_, ok = b.TakeFor(f, epoch+400, 20, 100) // 10 are missing
	require.True(t, ok)
	b.SetUnitFor(f, epoch+400, Moment{ns: 20}) // 30 are missing
	b.Refund(f, first, 40)                     // 10 of them count
	require.Equal(t, 80.0, b.Left(epoch+400, 100))
}
