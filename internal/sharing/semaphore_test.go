package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
)

func permits(t *testing.T, m *sharing.Member, threshold float64, on cluster.OnFailure) *sharing.Semaphore {
	t.Helper()
	s, err := m.Semaphore(m.Key("orders"), sharing.SemaphoreConfig{Threshold: threshold, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: on}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running tracks the calls of one member that hold permits.
type running struct {
	m     *sharing.Member
	s     *sharing.Semaphore
	units int64
}

// call starts another call if it gets its permits.
func (r *running) call(t *testing.T, units int64) bool {
	t.Helper()
	needs := []sharing.Need{{Limit: r.s, Units: units}}
	if err := r.m.Fetch(t.Context(), r.s.Timeout(), needs); err != nil {
		t.Fatal(err)
	}
	if needs[0].Got {
		r.units += units
	}
	return needs[0].Got
}

// turn ends one call, and tries to start more than may run.
func (r *running) turn(t *testing.T) {
	t.Helper()
	if r.units > 0 {
		r.units--
		r.s.Release(0, 1)
	}
	for range 3 {
		r.call(t, 1)
	}
}

// A rule in shadow mode counts the calls it would refuse, even before the store has replied. known
// bug 201
func TestPermitsThatAreTried(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &onItsWay{Memory: cluster.NewMemory(clock)}
	s := permits(t, join(t, store, clock), 10, cluster.Closed)
	for round := range 50 {
		took := 0
		for range 30 {
			if s.TryShadow(0, clock.Now(), 1) {
				took++
			}
		}
		if took != 10 {
			t.Fatalf("round %d: %d of 30 calls would run under a limit of 10", round, took)
		}
		for range took {
			s.Release(0, 1)
		}
		if round%3 == 2 && len(store.dones) > 0 {
			store.answer()
		}
		clock.Advance(3 * time.Millisecond)
	}
	for len(store.dones) > 0 {
		store.answer()
	}
}

// Another member's calls count as soon as the store reports them.
func TestPermitsThatAreTriedByTwo(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	a, b := permits(t, join(t, store, clock), 10, cluster.Closed), permits(t, join(t, store, clock), 10, cluster.Closed)
	took := 0
	for range 30 {
		for _, s := range []*sharing.Semaphore{a, b} {
			if s.TryShadow(0, clock.Now(), 1) {
				took++
			}
		}
		clock.Advance(time.Millisecond)
	}
	if took < 10 || took > 12 {
		t.Errorf("%d calls of two members would run at once under a limit of 10", took)
	}
}

// A key that is being moved is requested once per second, and its store stays reachable. known bug
// 212
func TestPermitsThatAreMoved(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &failing{Memory: cluster.NewMemory(clock), err: fmt.Errorf("%w, %w", store.ErrMoving, store.ErrNotExecuted)}
	m := join(t, store, clock)
	r := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
	for range 100 {
		r.call(t, 1)
		clock.Advance(9 * time.Millisecond)
	}
	if f := r.s.Stats(); f.Requests > 2 || !f.Unreachable {
		t.Errorf("%+v", f)
	}
	store.err = nil
	if n := fetch(t, m, share(t, m, 10, cluster.Closed), 1); !n.Got {
		t.Error("the store isn't away, only a key")
	}
	clock.Advance(time.Second)
	if r.call(t, 1); !r.call(t, 1) {
		t.Error("the key has arrived")
	}
}

// A member that leaves while it asks for permits gives back the grant. known bug 205
func TestCloseWhileAskingForPermits(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	memory := cluster.NewMemory(clock)
	m := join(t, &untilItLeaves{memory, make(chan struct{})}, clock)
	permits(t, m, 10, cluster.Closed).TryAcquire(0, clock.Now(), 8)
	m.Close()
	other := join(t, memory, clock)
	if r := (&running{m: other, s: permits(t, other, 10, cluster.Closed)}); !r.call(t, 10) {
		t.Fatal("the member has left, but has permits")
	}
}

// Permits that the store counts beyond the limit become free as their calls end, not when their
// members would expire. known bug 206
func TestPermitsBeyondTheLimitComeBack(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &fickle{Memory: cluster.NewMemory(clock), away: true}
	var members []*running
	for range 4 {
		m := join(t, store, clock)
		members = append(members, &running{m: m, s: permits(t, m, 2, cluster.Open)})
	}
	for range 10 { // each finds the store unreachable, and starts a call
		for _, r := range members[:3] {
			r.call(t, 1)
			r.s.Release(0, 1)
		}
	}
	for _, r := range members[:3] {
		if !r.call(t, 1) {
			t.Fatal("a call was refused, but onFailure is open")
		}
	}
	store.away = false
	for range 30 { // the store is back, and knows of three calls
		clock.Advance(100 * time.Millisecond)
	}
	for _, r := range members[:3] {
		if r.s.Stats().Unreachable {
			t.Fatal("the store isn't back")
		}
		r.s.Release(0, 1)
	}
	for range 4 {
		clock.Advance(100 * time.Millisecond)
	}
	if !members[3].call(t, 2) {
		t.Error("no call runs, and there are no permits")
	}
}

// If running calls exceed the limit, because it was lowered or the store was unreachable, no others
// replace them until all members are within the limit. known bug 188
func TestPermitsComeDown(t *testing.T) {
	for name, lowers := range map[string]bool{"the limit is lowered": true, "the store was away": false} {
		t.Run(name, func(t *testing.T) {
			clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
			store := &fickle{Memory: cluster.NewMemory(clock)}
			limit, first := 4.0, 20.0
			if !lowers {
				limit, first = 20, 20
			}
			members := make([]*running, 2)
			for i := range members {
				m := join(t, store, clock)
				members[i] = &running{m: m, s: permits(t, m, first, cluster.Open)}
			}
			if !lowers {
				store.away = true
			}
			for range 20 {
				for _, r := range members {
					for range 2 {
						r.call(t, 1)
					}
				}
				clock.Advance(time.Millisecond)
			}
			sum := func() int64 { return members[0].units + members[1].units }
			if sum() < 20 {
				t.Fatalf("%d run", sum())
			}
			store.away = false
			for _, r := range members {
				r.s = permits(t, r.m, limit, cluster.Open)
			}
			for range 200 {
				for _, r := range members {
					r.turn(t)
				}
				clock.Advance(20 * time.Millisecond)
			}
			if n := sum(); n > int64(limit) || n < int64(limit)-1 {
				t.Errorf("%d calls run at the end, but the limit is %v", n, limit)
			}
		})
	}
}

// A call that needs more than the free permits is refused; smaller calls are not. known bug 189
func TestALargeCallRefusesNoSmallOne(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	m := join(t, cluster.NewMemory(clock), clock)
	r := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
	if !r.call(t, 6) {
		t.Fatal("6 of 10 permits are refused")
	}
	for i := range 50 {
		if r.call(t, 5) {
			t.Fatal("11 of 10 permits are granted")
		}
		if a := r.s.Ask(clock.Now(), 5); i > 0 && a != sharing.Refuses {
			t.Errorf("the next Ask returns %v", a)
		}
		if !r.call(t, 3) { // more than the member holds in advance
			t.Fatal("3 of 4 permits are refused")
		}
		r.units -= 3
		r.s.Release(0, 3)
		clock.Advance(5 * time.Millisecond)
	}
}

// A member gives permits back 100 to 200 ms after a call last used them.
func TestIdlePermitsGoBack(t *testing.T) {
	for hold := range 250 * time.Millisecond / time.Millisecond {
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		m := join(t, cluster.NewMemory(clock), clock)
		r := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
		if !r.call(t, 8) {
			t.Fatal("no permits")
		}
		clock.Advance(hold * time.Millisecond)
		r.s.Release(0, 8)
		released := clock.Now()
		for r.s.Stats().Leased > 0 {
			clock.Advance(time.Millisecond)
		}
		if idle := time.Duration(clock.Now() - released); idle < 100*time.Millisecond || idle > 200*time.Millisecond {
			t.Fatalf("held for %v, then idle for %v", hold*time.Millisecond, idle)
		}
	}
}

// While a batch is in flight the alarm doesn't ring for commands that wait for it. If it did, time
// would stand still in a synctest bubble. known bug 190
func TestIdlePermitsWaitForTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clocks.NewSystem()
		m, err := sharing.Join(cluster.Config{Store: late{cluster.NewMemory(clock)}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		began := time.Now()
		// at sleeps until a time of the bubble.
		at := func(ms int) { time.Sleep(time.Until(began.Add(time.Duration(ms) * time.Millisecond))) }
		calls := map[string]*running{}
		for _, name := range []string{"r", "s"} {
			s, err := m.Semaphore(name, sharing.SemaphoreConfig{Threshold: 100, Rule: cluster.Rule{Scope: cluster.Global}})
			if err != nil {
				t.Fatal(err)
			}
			calls[name] = &running{m: m, s: s}
		}
		call := func(name string, units int64) {
			if !calls[name].call(t, units) {
				t.Errorf("%s: a call of %d units was refused", name, units)
				return
			}
			calls[name].s.Release(0, units)
		}
		for range 3 {
			began = time.Now()
			call("r", 1) // permits idle from here on are due at 115
			at(100)
			done := make(chan bool)
			go func() {
				call("r", 10)
				done <- true
			}()
			at(110)
			call("s", 1)
			<-done
			at(1000)
		}
	})
}

// late is a store that takes 15 ms of bubble time.
type late struct{ store.Store }

func (l late) Do(ctx context.Context, batch []store.Command) {
	time.Sleep(15 * time.Millisecond)
	l.Store.Do(ctx, batch)
}

// A machine that was suspended may have lost its permits: no call gets one before the store has
// reported them. known bug 191
func TestPermitsOfASuspendedMachine(t *testing.T) {
	clock, theirs := clocks.NewManual(time.Unix(1_800_000_000, 0)), &hands{}
	theirs.now = clock.Now()
	store := cluster.NewMemory(theirs)
	m := join(t, store, clock)
	m.SetWall(func() int64 { return theirs.now })
	mine := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
	if !mine.call(t, 10) {
		t.Fatal("no call runs")
	}
	mine.s.Release(0, 10)
	theirs.now += int64(time.Minute) // the member's own clock stood still
	other := join(t, store, clocks.NewManual(time.Unix(0, theirs.now)))
	if theirs := (&running{m: other, s: permits(t, other, 10, cluster.Closed)}); !theirs.call(t, 10) {
		t.Fatal("no call of another member runs")
	}
	fetch(t, m, share(t, m, 1000, cluster.Closed), 1) // a call reads the clock
	if mine.s.TryAcquire(0, clock.Now(), 1) {
		t.Error("it has a permit that another member has")
	}
}

// A semaphore whose key holds a foreign value reports that, and doesn't ask for each call. known
// bug 194
func TestKeyThatIsNoSemaphores(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	logged := 0
	log := slog.New(onLog{slog.DiscardHandler, func() { logged++ }})
	foreign := &failing{Memory: cluster.NewMemory(clock), err: store.ErrForeign}
	m, err := sharing.Join(cluster.Config{Store: foreign, Clock: clock, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
	for range 100 {
		if r.call(t, 1) || r.s.TryAcquire(0, clock.Now(), 1) {
			t.Fatal("a call runs, but onFailure is closed")
		}
		clock.Advance(25 * time.Millisecond)
	}
	if f := r.s.Stats(); logged != 1 || !f.Unreachable || f.Why != store.ErrForeign.Error() || f.Requests > 4 {
		t.Fatalf("logged %d times, %+v", logged, f)
	}
	foreign.err = nil
	clock.Advance(time.Second)
	r.call(t, 1)
	clock.Advance(time.Second)
	if ok, f := r.call(t, 1), r.s.Stats(); !ok || f.Unreachable || f.Why != "" {
		t.Fatalf("the key is usable: %t, %+v", ok, f)
	}
}

// A semaphore with onFailure closed probes its shard by itself, since no other key may be there.
func TestClosedSemaphoreComesBack(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := apart{&failing{Memory: cluster.NewMemory(clock), err: store.ErrNotExecuted}, map[string]int{}}
	m := join(t, store, clock)
	r := &running{m: m, s: permits(t, m, 10, cluster.Closed)}
	call := func() bool {
		clock.Advance(10 * time.Millisecond)
		return r.s.Ask(clock.Now(), 1) == sharing.NeedsMore && r.call(t, 1)
	}
	for range 50 {
		if call() {
			t.Fatal("a call runs, but onFailure is closed")
		}
	}
	store.err = nil
	for range 150 {
		call()
	}
	if f := r.s.Stats(); f.Unreachable || r.units == 0 {
		t.Fatalf("%d run, %+v", r.units, f)
	}
}

// Held counts other members' permits from the store's latest reply, only until they expire.
func TestWhatOthersHold(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	clock.SetSleep(clocks.SleepAdvance)
	memory := cluster.NewMemory(clock)
	var all []*sharing.Semaphore
	for range 2 {
		m := join(t, memory, clock)
		g, err := m.Semaphore("permits", sharing.SemaphoreConfig{Threshold: 10, Rule: cluster.Rule{Scope: cluster.Global}})
		if err != nil {
			t.Fatal(err)
		}
		g.TryAcquire(0, clock.Now(), 1) // sends a request
		if !g.TryAcquire(0, clock.Now(), 1) {
			t.Fatal("no permit")
		}
		all = append(all, g)
	}
	a, b := all[0], all[1]
	if held, limit := b.Held(); held < 2 || limit != 10 {
		t.Fatalf("%d of %d are held", held, limit)
	}
	a.Release(0, 1)
	clock.Advance(time.Second)
	if held, _ := a.Held(); held < 1 {
		t.Fatalf("%d are held", held)
	}
	b.Release(0, 1)
	clock.Advance(10 * time.Second)
	for _, g := range all {
		if held, _ := g.Held(); held != 0 {
			t.Errorf("%d are held, after 10 s without a call", held)
		}
	}
}

// setClock is a store's clock that is ahead of another, and can be set.
type setClock struct {
	clocks.Clock
	ahead time.Duration
}

func (c *setClock) Now() int64 { return c.Clock.Now() + int64(c.ahead) }

// The permits of a killed member are free within two seconds, and a member that pauses for less
// keeps its own, regardless of the clocks of all members and the store, even if the store's is set
// back.
func TestPermitsOfTheDeadOnClocksFarApart(t *testing.T) {
	const tick = 5 * time.Millisecond
	for _, set := range []time.Duration{0, -time.Millisecond, -900 * time.Millisecond, -3 * time.Hour} {
		base := clocks.NewManual(time.Unix(1e9, 0))
		at := &setClock{base, 5 * time.Hour}
		store := cluster.NewMemory(at)
		var clock []*clocks.Manual
		var all []*sharing.Semaphore
		for _, apart := range []time.Duration{0, -3 * time.Hour, 20_000 * time.Hour} {
			c := clocks.NewManual(time.Unix(1e9, 0).Add(apart))
			s, err := join(t, store, c).Semaphore("s", sharing.SemaphoreConfig{Threshold: 9, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}})
			if err != nil {
				t.Fatal(err)
			}
			clock, all = append(clock, c), append(all, s)
		}
		has, runs := make([]int, 3), []bool{true, true, true}
		turn := func(most int) {
			for i, s := range all {
				for runs[i] && has[i] < most && s.TryAcquire(0, clock[i].Now(), 1) {
					has[i]++
				}
			}
			base.Advance(tick)
			for i, c := range clock {
				if runs[i] {
					c.Advance(tick)
				}
			}
		}
		for range 100 {
			turn(3)
		}
		if !slices.Equal(has, []int{3, 3, 3}) {
			t.Fatal(has)
		}
		runs[1], runs[2] = false, false // one is killed, the other paused
		for gone := time.Duration(0); gone < 6*time.Second; gone += tick {
			switch gone {
			case 700 * time.Millisecond:
				at.ahead += set
			case 1300 * time.Millisecond:
				runs[2] = true
				clock[2].Advance(1300 * time.Millisecond)
			}
			turn(9)
			if n := has[0] + has[2]; n > 9 || gone > 2*time.Second+50*time.Millisecond && n < 9 {
				t.Fatalf("set by %v, after %v: the others have %d of 9 permits", set, gone, n)
			}
		}
	}
}

// If a command's expiry is shorter than the rule's when the reply arrives, the shorter one limits
// the permits: afterwards no call gets one, as another member may hold them. known bug 239
func TestExpiryThatIsRaisedWhileAsking(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	memory := cluster.NewMemory(clock)
	store := &onItsWay{Memory: memory}
	a, b := join(t, store, clock), join(t, memory, clock)
	rule := cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}
	semaphore := func(m *sharing.Member, expiry time.Duration) *sharing.Semaphore {
		s, err := m.Semaphore("orders", sharing.SemaphoreConfig{Threshold: 10, Expiry: expiry, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, other := semaphore(a, time.Second), semaphore(b, time.Second)
	if one.TryAcquire(0, clock.Now(), 10) {
		t.Fatal("got permits without asking")
	}
	semaphore(a, time.Minute)
	for len(store.dones) > 0 {
		store.answer()
	}
	for range 200 { // the member's requests get no reply in this time
		if one.TryAcquire(0, clock.Now(), 10) {
			one.Release(0, 10)
		}
		clock.Advance(10 * time.Millisecond)
	}
	taken := int64(0)
	for range 10 {
		if other.TryAcquire(0, clock.Now(), 1) || other.TryAcquire(0, clock.Now(), 1) { // the first call asks
			taken++
		}
	}
	for taken < 20 && one.TryAcquire(0, clock.Now(), 1) {
		taken++
	}
	if taken > 10 {
		t.Fatalf("%d calls run at once under a limit of 10", taken)
	}
}

// A threshold that is lowered while a command is in flight applies at once: the reply is for a
// larger limit, so the store is asked again immediately. known bug 240
func TestThresholdThatIsLoweredWhileAsking(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	store := &onItsWay{Memory: cluster.NewMemory(clock)}
	m := join(t, store, clock)
	s := permits(t, m, 10, cluster.Closed)
	if s.TryAcquire(0, clock.Now(), 8) {
		t.Fatal("got permits without asking")
	}
	permits(t, m, 4, cluster.Closed)
	store.answer()
	if s.TryAcquire(0, clock.Now(), 5) {
		t.Fatal("five calls run under a limit of 4")
	}
	for len(store.dones) > 0 {
		store.answer()
	}
	if !s.TryAcquire(0, clock.Now(), 4) {
		t.Fatal("fewer than four calls run under a limit of 4")
	}
	if held, limit := s.Held(); held != 4 || limit != 4 {
		t.Fatalf("%d held, of %d", held, limit)
	}
}
