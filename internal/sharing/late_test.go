package sharing_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// slowStore is a member whose store replies on demand, with a rule in shadow mode.
type slowStore struct {
	*testing.T
	clock   *clocks.Manual
	store   *onItsWay
	m       *sharing.Member
	refused stat.Tally
}

func newSlowStore(t *testing.T) *slowStore {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	s := &slowStore{T: t, clock: clock, store: &onItsWay{Memory: cluster.NewMemory(clock)}}
	s.m = join(t, s.store, clock)
	t.Cleanup(s.answer)
	return s
}

// answer replies to all batches, including batches sent in the meantime.
func (s *slowStore) answer() {
	for len(s.store.dones) > 0 {
		s.store.answer()
	}
}

func (s *slowStore) call(limits ...sharing.Limit) *sharing.Late {
	var needs []sharing.Need
	for _, l := range limits {
		needs = append(needs, sharing.Need{Limit: l, Units: 1})
	}
	return s.m.FetchShadow(needs, 0, &s.refused)
}

func (s *slowStore) want(refused, late int64, when string) {
	s.Helper()
	if got := s.refused.Load(); got != refused {
		s.Errorf("%s: %d calls would be refused, want %d", when, got, refused)
	}
	if got := s.m.Late(); got != late {
		s.Errorf("%s: %d calls have yet to be decided, want %d", when, got, late)
	}
}

// Calls under rules in shadow mode are decided when the store has replied, like waiting calls.
func TestLate(t *testing.T) {
	s := newSlowStore(t)
	w, g := share(t, s.m, 2, cluster.Closed), space(t, s.m, 10, time.Second, cluster.Closed)
	for range 5 {
		s.call(w)
	}
	for range 5 {
		s.m.FetchShadow([]sharing.Need{{Limit: g, Units: 1, MaxWait: 250 * time.Millisecond}}, 0, &s.refused)
	}
	s.want(0, 10, "before the replies")
	s.answer()
	s.want(3+2, 0, "after the replies")
	for _, f := range []sharing.Stats{w.Stats(), g.Stats()} {
		if f.Waited != 0 {
			t.Errorf("%d calls have waited", f.Waited)
		}
	}
}

// If no reply comes within a call's wait, or if the member leaves, the limit follows its onFailure.
// known bug 216
func TestLateWithoutAnAnswer(t *testing.T) {
	for on, refused := range map[cluster.OnFailure]int64{cluster.Local: 5, cluster.Open: 0, cluster.Closed: 8} {
		t.Run(on.String(), func(t *testing.T) {
			for name, passes := range map[string]func(*slowStore){
				"late":   func(s *slowStore) { s.clock.Advance(time.Millisecond) },
				"closed": func(s *slowStore) { s.m.Close() },
			} {
				s := newSlowStore(t)
				_, err := s.m.Window("patient", sharing.WindowConfig{
					Shape: stat.Shape{Interval: 10 * time.Second, Buckets: 1}, Threshold: 1, Rule: cluster.Rule{Scope: cluster.Global, Timeout: time.Second},
				})
				if err != nil {
					t.Fatal(err)
				}
				w := share(t, s.m, 3, on)
				for range 8 {
					s.call(w)
				}
				s.clock.Advance(w.Timeout() - time.Millisecond)
				s.want(0, 8, name+", before")
				passes(s)
				s.want(refused, 0, name)
			}
		})
	}
}

// Only a limited number of calls is decided late. Further calls are decided at once, by onFailure.
func TestTooManyLate(t *testing.T) {
	s := newSlowStore(t)
	w := share(t, s.m, 3, cluster.Closed)
	for range sharing.MostLate + 5 {
		s.call(w)
	}
	s.want(5, sharing.MostLate, "before the reply")
	s.answer()
	s.want(sharing.MostLate+5-3, 0, "after the reply")
}

// If one limit refuses a call, the other gets its unit back; so does the limit of a call that
// doesn't run after all.
func TestLateUnitsGoBack(t *testing.T) {
	s := newSlowStore(t)
	w, g := share(t, s.m, 1, cluster.Closed), space(t, s.m, 1, time.Second, cluster.Closed)
	s.call(g)
	s.answer()
	refused := s.call(w, g)
	s.answer()
	s.want(1, 0, "no turn")
	refused.Abandon() // its unit is returned anyway
	for _, answered := range []bool{false, true} {
		s.clock.Advance(time.Millisecond)
		l := s.call(w)
		if answered {
			s.answer()
		}
		l.Abandon()
		s.answer()
		s.want(1, 0, fmt.Sprint("abandoned, answered: ", answered))
	}
	s.clock.Advance(time.Millisecond)
	s.call(w)
	s.answer()
	s.want(1, 0, "the unit is there")
	l := s.call(w)
	s.answer()
	s.want(2, 0, "the unit is taken")
	l.Abandon()
	s.call(w)
	s.answer()
	s.want(3, 0, "a refused call had none to give back")
}

// A call that is decided late leaves nothing on the member's agenda, whichever event comes first.
func TestLateIsForgotten(t *testing.T) {
	s := newSlowStore(t)
	w := share(t, s.m, 3, cluster.Closed)
	planned := s.m.Planned()
	for range 100 {
		s.call(w)
	}
	if n := s.m.Planned() - planned; n < 100 {
		t.Fatalf("%d planned", n)
	}
	s.answer()
	if n := s.m.Planned() - planned; n > 1 {
		t.Errorf("%d tasks are left", n)
	}
}

// Under concurrency each call is decided once, and none remains after the member has left.
func TestLateOfMany(t *testing.T) {
	clock := clocks.NewSystem()
	m := join(t, slow{cluster.NewMemory(clock)}, clock)
	w, g := share(t, m, 50, cluster.Local), space(t, m, 1000, time.Second, cluster.Local)
	var refused stat.Tally
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 500 {
				needs := []sharing.Need{{Limit: w, Units: 1}, {Limit: g, Units: 1, MaxWait: time.Millisecond}}
				if l := m.FetchShadow(needs[:1+j%2], uint32(i), &refused); j%7 == 0 {
					l.Abandon()
				}
			}
		})
	}
	wg.Wait()
	m.Close()
	if n := m.Late(); n != 0 {
		t.Errorf("%d calls have yet to be decided", n)
	}
	if n := refused.Load(); n == 0 || n > 2000 {
		t.Errorf("%d of 2000 calls would be refused", n)
	}
}

func (s *slowStore) window(i int, limit float64) *sharing.Window {
	w, err := s.m.Window(fmt.Sprint("v", i), sharing.WindowConfig{Shape: tenth, Threshold: limit, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed}})
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// No limit refers to a decided call: the limits would keep each other and earlier calls alive.
// known bug 218
func TestLateKeepsNoLimit(t *testing.T) {
	s := newSlowStore(t)
	latest := s.window(0, 100_000)
	var all []weak.Pointer[sharing.Window]
	for i := range 50 {
		all = append(all, weak.Make(latest))
		next := s.window(1+i, 100_000)
		s.call(latest, next)
		s.answer()
		latest = next
	}
	for range 400 {
		s.clock.Advance(50 * time.Millisecond)
		s.answer()
	}
	s.store.batches, s.store.dones = nil, nil
	runtime.GC()
	alive := 0
	for _, p := range all {
		if p.Value() != nil {
			alive++
		}
	}
	runtime.KeepAlive(latest)
	if alive > 1 {
		t.Errorf("%d of 50 unused windows are alive", alive)
	}
}

// Units granted to a call that is refused as the member leaves are returned. known bug 219
func TestLateAsTheMemberGoes(t *testing.T) {
	s := newSlowStore(t)
	a, b := s.window(1, 1), s.window(2, 1)
	s.call(b)
	s.answer()
	s.call(a, b)
	s.answer()
	s.want(1, 0, "b is taken")
	s.m.Close()
	s.answer()
	other := newSlowStore(t)
	other.m = join(t, s.store.Memory, s.clock)
	if n := fetch(t, other.m, other.window(1, 1), 1); !n.Got {
		t.Error("the unit of a is gone")
	}
}
