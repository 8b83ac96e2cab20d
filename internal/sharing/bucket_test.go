package sharing_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/sharing"
)

// scoop returns a member's bucket of calls that gains some a second.
func scoop(t *testing.T, m *sharing.Member, rate float64, burst int64, on cluster.OnFailure) *sharing.Bucket {
	t.Helper()
	return scoopOf(t, m, sharing.BucketConfig{Interval: time.Second, Threshold: rate, Burst: burst, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: on}})
}

func scoopOf(t *testing.T, m *sharing.Member, cfg sharing.BucketConfig) *sharing.Bucket {
	t.Helper()
	b, err := m.Bucket("tokens", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spend makes a call, and returns its token.
func spend(t *testing.T, m *sharing.Member, b *sharing.Bucket, now, units int64) (token int64, ok bool) {
	t.Helper()
	switch b.Ask(now, units) {
	case sharing.Fits:
		return b.TryTake(now, units)
	case sharing.Refuses:
		return 0, false
	}
	need := []sharing.Need{{Limit: b, Units: units}}
	if err := m.Fetch(t.Context(), b.Timeout(), need); err != nil {
		t.Fatal(err)
	}
	return need[0].Token, need[0].Got
}

func spends(t *testing.T, m *sharing.Member, b *sharing.Bucket, now, units int64) bool {
	t.Helper()
	_, ok := spend(t, m, b, now, units)
	return ok
}

// drained returns the calls of one unit that a bucket admits now.
func drained(t *testing.T, m *sharing.Member, b *sharing.Bucket, clock clocks.Clock) (n int) {
	t.Helper()
	for n < 10_000 && spends(t, m, b, clock.Now(), 1) {
		n++
	}
	return n
}

// A bucket that one member uses is as a local one, whatever it has on lease: 0
// verdicts differ.
func TestBucketTwin(t *testing.T) {
	seed := *chance.Seed
	refused, drifted := 0, 0
	for round := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, round))
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		store := cluster.NewMemory(clock)
		rate := []float64{1, 10, 1000, 20_000}[r.IntN(4)]
		burst := int64(rate/50) + r.Int64N(30) + 1
		cfg := sharing.BucketConfig{Interval: time.Second, Threshold: rate, Burst: burst, Costs: r.IntN(2) == 0,
			Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}}
		join(t, store, clock)
		m := join(t, store, clock)
		b, twin := scoopOf(t, m, cfg), meter.MakeTokenBucket()
		twin.SetUnit(clock.Now(), meter.UnitCost(time.Second, rate))
		each := int64(float64(time.Second) / rate)
		for range 3000 {
			clock.Advance(time.Duration(r.Int64N(3*each) * []int64{1, 1, 1, 0, 20}[r.IntN(5)] / 2))
			n := 1 + r.Int64N(3)
			if r.IntN(20) == 0 {
				n = 1 + r.Int64N(burst+2)
			}
			want := twin.Fits(clock.Now(), n, burst+1)
			got := spends(t, m, b, clock.Now(), n)
			if got {
				twin.Take(clock.Now(), n, burst+1)
			} else {
				refused++
			}
			if got == want {
				continue
			}
			// A turn on lease is due later, and passes earlier, by what clocks may drift in that time; and
			// the unit of a turn that passed unused is then gained again.
			if wait, known := b.RetryAfter(clock.Now(), n); got || !known || rate < 1000 || wait > time.Duration(each+burst*each/200)+25*time.Microsecond {
				t.Fatalf("seed %d, round %d: %g a second, burst %d: %d units: %t, want %t; again in %v", seed, round, rate, burst, n, got, want, wait)
			}
			drifted++
		}
	}
	if refused < 1000 || drifted > refused/25 {
		t.Fatalf("%d calls were refused, %d for the drift", refused, drifted)
	}
}

// Members share the burst and the rate.
func TestMembersShareABucket(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	members := []*sharing.Member{join(t, store, clock), join(t, store, clock), join(t, store, clock)}
	all := 0
	for _, m := range members {
		for range 40 {
			if spends(t, m, scoop(t, m, 100, 49, cluster.Closed), clock.Now(), 1) {
				all++
			}
		}
	}
	if all != 50 {
		t.Errorf("%d calls of the burst, want 50", all)
	}
	for range 1000 {
		clock.Advance(time.Millisecond)
		for _, m := range members {
			if spends(t, m, scoop(t, m, 100, 49, cluster.Closed), clock.Now(), 1) {
				all++
			}
		}
	}
	if all < 148 || all > 150 {
		t.Errorf("%d calls after a second, want 150, or hardly fewer", all)
	}
}

// A call of more units than the bucket holds is refused without the store, and there is no use in
// coming again; for another one RetryAfter is the time at which it fits.
func TestRetryAfterOfABucket(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	m := join(t, cluster.NewMemory(clock), clock)
	b := scoop(t, m, 10, 9, cluster.Closed)
	if _, known := b.RetryAfter(clock.Now(), 11); known || spends(t, m, b, clock.Now(), 11) || b.Stats().Requests != 0 {
		t.Errorf("11 units, of 10: known %t, %+v", known, b.Stats())
	}
	if n := drained(t, m, b, clock); n != 10 {
		t.Errorf("%d calls, want 10", n)
	}
	for _, units := range []int64{1, 3, 10} {
		wait, known := b.RetryAfter(clock.Now(), units)
		if !known || wait <= 0 {
			t.Fatalf("%d units: %v, %t", units, wait, known)
		}
		clock.Advance(wait * 98 / 100)
		if spends(t, m, b, clock.Now(), units) {
			t.Errorf("%d units fit before %v", units, wait)
		}
		clock.Advance(wait - wait*98/100)
		if !spends(t, m, b, clock.Now(), units) {
			t.Errorf("%d units don't fit after %v", units, wait)
		}
	}
}

// A changed rate or burst leaves the number of missing units as it was: no more than the larger limit
// passes, and nothing comes back.
func TestAReloadedBucket(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	a, b := join(t, store, clock), join(t, store, clock)
	if n := drained(t, a, scoop(t, a, 100, 9, cluster.Closed), clock); n != 10 {
		t.Fatalf("%d calls, want 10", n)
	}
	for _, x := range []struct {
		rate  float64
		burst int64
		want  int
	}{{1, 9, 0}, {1, 12, 3}, {100, 12, 0}, {100, 4, 0}, {1000, 99, 87}} {
		for _, m := range []*sharing.Member{b, a} {
			n := drained(t, m, scoop(t, m, x.rate, x.burst, cluster.Closed), clock)
			if n != x.want {
				t.Errorf("%g a second with burst %d: %d more calls, want %d", x.rate, x.burst, n, x.want)
			}
			x.want = 0
		}
	}
}

// A call that used less gives units back to its member's lease, in parts, until their time has
// passed; one that used more makes all members wait for it.
func TestSettledUnitsOfABucket(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	m, other := join(t, store, clock), join(t, store, clock)
	cfg := sharing.BucketConfig{Interval: time.Second, Threshold: 1000, Burst: 999, Costs: true, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}}
	b, of := scoopOf(t, m, cfg), scoopOf(t, other, cfg)
	var tokens []int64
	for range 4 {
		token, ok := spend(t, m, b, clock.Now(), 250)
		if !ok {
			t.Fatal("250 of 1000 units are refused")
		}
		tokens = append(tokens, token)
	}
	tokens[1] = b.Cancel(tokens[1], 100)
	tokens[1] = b.Cancel(tokens[1], 50)
	b.Cancel(tokens[3], 100)
	if spends(t, other, of, clock.Now(), 1) || spends(t, m, b, clock.Now(), 251) {
		t.Error("more units than were given back")
	}
	token, ok := spend(t, m, b, clock.Now(), 250) // of several runs
	if !ok || spends(t, m, b, clock.Now(), 1) {
		t.Error("the units that were given back are gone, or there are more")
	}
	token = b.Cancel(token, 120)
	b.Cancel(token, 100)
	if !spends(t, m, b, clock.Now(), 220) || spends(t, m, b, clock.Now(), 1) {
		t.Error("those of several runs are gone, or there are more")
	}
	b.Charge(clock.Now(), 500)
	clock.Advance(500 * time.Millisecond)
	n := drained(t, m, b, clock) + drained(t, other, of, clock)
	if n > 40 { // leased before the charge
		t.Errorf("%d units pass before the charge is gained", n)
	}
	clock.Advance(100 * time.Millisecond)
	if n += drained(t, m, b, clock) + drained(t, other, of, clock); n < 95 || n > 100 {
		t.Errorf("%d units since the charge was gained, want 100", n)
	}
	clock.Advance(2 * time.Second)
	b.Cancel(tokens[0], 250) // long passed
	if n, _ := b.Left(clock.Now()); n != 0 || !spends(t, m, b, clock.Now(), 1000) || spends(t, m, b, clock.Now(), 1) {
		t.Errorf("%d units of passed turns", n)
	}
}

// Without the store a member has its share of the rate and of the burst, and the store counts the
// units once it is back.
func TestBucketWithoutTheStore(t *testing.T) {
	for on, want := range map[cluster.OnFailure]int{cluster.Local: 10, cluster.Closed: 0, cluster.Open: 10_000} {
		t.Run(on.String(), func(t *testing.T) {
			clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
			st := &failing{Memory: cluster.NewMemory(clock), err: errStoreIsAway}
			m, err := sharing.Join(cluster.Config{Store: st, Clock: clock, Namespace: "test", Members: 4, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			b := scoop(t, m, 40, 39, on)
			for range 5 { // then it is known to be away
				spends(t, m, b, clock.Now(), 41)
				spends(t, m, b, clock.Now(), 1)
			}
			if n := drained(t, m, b, clock); on != cluster.Open && n != max(0, want-5) || on == cluster.Open && n != want {
				t.Errorf("%d calls at once, want %d", n+5, want)
			}
			for range 10 {
				clock.Advance(100 * time.Millisecond)
				n := drained(t, m, b, clock)
				if want := map[cluster.OnFailure]int{cluster.Local: 1, cluster.Open: 10_000}[on]; n != want {
					t.Fatalf("%d calls in a tenth of a second, want %d", n, want)
				}
			}
			if _, known := b.RetryAfter(clock.Now(), 1); known != (on != cluster.Closed) {
				t.Errorf("known: %t", known)
			}
			st.err = nil
			for i := 0; i < 12 && b.Stats().Unreachable; i++ { // one of the next commands is let through
				clock.Advance(100 * time.Millisecond)
				spends(t, m, b, clock.Now(), 1)
			}
			if b.Stats().Unreachable {
				t.Fatal("it is still away")
			}
			other := join(t, st, clock)
			if n := drained(t, other, scoop(t, other, 40, 39, on), clock); on == cluster.Local && (n < 29 || n > 31) || n > 40 {
				t.Errorf("%d calls of another member", n)
			}
		})
	}
}

var errStoreIsAway = context.DeadlineExceeded
