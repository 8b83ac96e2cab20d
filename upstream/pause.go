package upstream

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// maxPaused is the number of resources, or hosts, that a rule pauses at a time. Others are asked as
// before, so that hostile names take no more memory: about 200 KB.
const maxPaused = 1000

// absurd is a time after which no server means to be asked again: more likely it sent a date where a
// number of seconds was due. RFC 9110 has no limit.
const absurd = 366 * 24 * time.Hour

// pauses holds the pauses of a rule, by resource or host; see [Scope]. They don't belong to the
// resources' nodes, so they outlast those, and names beyond the cap on resources have their own. All
// revisions of the rule share them.
//
// Under mu, a pause that begins replaces the map, and one that is extended replaces its span: so
// deciding on a call takes no lock. A call whose decision begins after add has returned
// sees the pause.
type pauses struct {
	all shared.Pointer[map[string]*pause] // nil if there are none

	mu     shared.Mutex
	rand   *rand.Rand // guarded by mu
	missed int64      // answers that found maxPaused others; guarded by mu
}

// pause is the pause of one resource or host.
type pause struct{ span shared.Pointer[span] }

// span is the time of a pause: no call passes before until, and all do from open on.
type span struct{ until, open int64 }

func newPauses(seed uint64) *pauses { return &pauses{rand: rand.New(rand.NewPCG(seed, 1))} }

// spanOf returns the span of a pause that an answer asks for, or false for none.
func spanOf(now int64, asked, most time.Duration) (span, bool) {
	if asked <= 0 || asked > absurd {
		return span{}, false
	}
	d := int64(min(asked, most))
	return span{now + d, now + d + d/10}, true
}

// add pauses the calls of a resource or host, or extends their pause.
func (p *pauses) add(name string, now int64, s span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all map[string]*pause
	if m := p.all.Load(); m != nil {
		all = *m
	}
	if x := all[name]; x != nil {
		if s.until > x.span.Load().until {
			x.span.Store(&s)
		}
		return
	}
	next := make(map[string]*pause, len(all)+1)
	for name, x := range all {
		if now < x.span.Load().open {
			next[name] = x
		}
	}
	if len(next) >= maxPaused {
		p.missed++
		return
	}
	x := new(pause)
	x.span.Store(&s)
	next[strings.Clone(name)] = x // it may be part of the memory of a URL
	p.all.Store(&next)
}

// find returns the span of the current pause, or false if there is none.
func (p *pauses) find(name string, now int64) (span, bool) {
	m := p.all.Load()
	if m == nil {
		return span{}, false
	}
	x := (*m)[name]
	if x == nil {
		return span{}, false
	}
	s := *x.span.Load()
	return s, now < s.open
}

// chance returns the probability with which a call is admitted.
func (s span) chance(now int64) float64 {
	switch {
	case now < s.until:
		return 0
	case now >= s.open:
		return 1
	}
	return float64(now-s.until) / float64(s.open-s.until)
}

// admit decides on a call.
func (p *pauses) admit(name string, now int64) bool {
	s, paused := p.find(name, now)
	if !paused {
		return true
	}
	chance := s.chance(now)
	return chance > 0 && p.draw() < chance
}

// retryAfter returns the time until a refused call should be tried again.
func (p *pauses) retryAfter(name string, now int64) time.Duration {
	s, paused := p.find(name, now)
	if !paused {
		return 0
	}
	begin := max(s.until, now)
	return time.Duration(begin-now) + time.Duration(p.draw()*float64(s.open-begin))
}

func (p *pauses) draw() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.Float64()
}

// current is a pause that has not ended.
type current struct {
	name string
	span
}

// list returns the pauses that have not ended, by name, and the number of answers that found no room.
func (p *pauses) list(now int64) (all []current, missed int64) {
	if m := p.all.Load(); m != nil {
		for _, name := range slices.Sorted(maps.Keys(*m)) {
			if s, paused := p.find(name, now); paused {
				all = append(all, current{name, s})
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return all, p.missed
}
