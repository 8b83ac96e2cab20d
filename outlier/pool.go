package outlier

import (
	"maps"
	"math"
	"strings"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shared"
)

// site is the state that the rules of a resource share.
//
// All decisions of the rules about the resource's endpoints happen under mu: which may be called,
// which are ejected, which return. Only a call that asks while none is ejected needs no lock:
// ejected is written under mu, so a call that reads 0 passes as of that instant; a call that ejects
// an endpoint an instant later doesn't see it, like any other call under way.
type site struct {
	mu      shared.Mutex
	pools   []*pool      // of the enforced rules
	share   float64      // the smallest of their shares: it holds for all of them together
	ejected shared.Int64 // by them, counting an endpoint ejected by two twice
}

// pool holds the endpoints of a resource as one rule sees them. It survives the revisions of the
// rule. The lock of the site guards it.
//
// Invariant: at every decision, no more of the recently chosen endpoints are ejected than the share
// allows, by this rule and the other enforced ones; or this rule has ejected none. For
//
//   - a breaker trips only if the share allows one more;
//   - over time too many may be ejected, because others are dropped: so before every decision
//     expired endpoints are dropped, and then the excess is let back in, starting with the endpoint
//     that has been out longest;
//   - dropping an ejected endpoint preserves it: (e-1)/(n-1) is at most e/n.
//
// A late caller, with a time before the latest, uses the latest time: time never goes back.
//
// The number of endpoints is bounded. When the pool is full, a new endpoint replaces the least
// recently used one in service, if none of its calls count anymore; otherwise calls to the new one
// are not tracked. An ejected endpoint stays in the pool: no number of new addresses brings it back
// into service.
type pool struct {
	site  *site
	rule  Rule
	terms *breaker.Terms

	known    map[string]*endpoint
	removed  int  // from known since it was created
	serving  list // their breakers are closed
	outside  list // ejected: their breakers are open or half-open
	latest   int64
	unjudged int64 // calls to endpoints that were not tracked

	enforced bool // it is one of the site's pools
	counted  int  // the part of outside that is in the site's count
}

// maxAddr is the maximum length of an address: anything longer isn't an address, and would fill the
// memory.
const maxAddr = 512

func newPool(s *site, r Rule, t *breaker.Terms) *pool {
	return &pool{site: s, rule: r, terms: t, known: make(map[string]*endpoint), latest: math.MinInt64}
}

// asks reports whether a call to an endpoint would be admitted as of now.
func (p *pool) asks(addr string, now int64) bool {
	c := p.known[addr]
	if c == nil || c.breaker.Asks(max(p.latest, now)) {
		return true
	}
	now = p.tidy(now) // it may be back by now, or dropped
	return c.in == nil || c.breaker.Asks(now)
}

// admit decides on a call. The endpoint is nil if it isn't tracked.
func (p *pool) admit(addr string, now int64) (c *endpoint, number uint64, probe, ok bool) {
	now = p.tidy(now)
	c = p.known[addr]
	if c == nil {
		if c = p.add(addr, now); c == nil {
			p.unjudged++
			return nil, 0, false, true
		}
	}
	number, probe, ok = c.breaker.Admit(now)
	if ok {
		p.place(c, now)
	}
	return c, number, probe, ok
}

// complete counts the end of a call, unless its endpoint has been dropped. A neutral call changes
// no state, so neither the share nor the ejected endpoints; but its endpoint was called, and stays
// known.
func (p *pool) complete(c *endpoint, number uint64, now int64, end breaker.End) {
	now = p.tidy(now)
	if c.in == nil {
		return
	}
	if c.in == &p.serving {
		p.place(c, now)
	}
	before := c.breaker.State()
	c.breaker.Complete(number, now, end, c.in == &p.outside || p.allows(p.taken(c)))
	if c.breaker.State() != before {
		p.place(c, now)
	}
}

// place puts an endpoint into the list for its breaker's state, as of now.
func (p *pool) place(c *endpoint, now int64) {
	c.touched = now
	if c.breaker.State() == breaker.Closed {
		p.serving.put(c)
	} else {
		p.outside.put(c)
	}
	p.site.count(p)
}

// tidy applies the effects of time since the last access: expired endpoints are dropped, each as of
// its expiry, and endpoints that the share no longer allows to be out are let back in. So the order
// in which calls arrive makes no difference. It returns the latest time of any call that passed.
func (p *pool) tidy(now int64) int64 {
	before := p.latest
	p.latest = max(before, now)
	for {
		c, at := p.nextToGo()
		if c == nil || at > p.latest {
			break
		}
		p.forget(c)
		p.settle(max(at, before)) // it may be before that if the rule has changed since
	}
	p.settle(p.latest)
	return p.latest
}

// nextToGo returns the endpoint to drop next, and when: one in service expires ForgetAfter after it
// was last chosen, an ejected one that long after it was due for a probe.
func (p *pool) nextToGo() (next *endpoint, at int64) {
	if c := p.serving.back; c != nil {
		next, at = c, c.touched+int64(p.rule.ForgetAfter)
	}
	if c := p.outside.back; c != nil {
		if then := c.touched + int64(p.rule.ForgetAfter+p.rule.Recovery); next == nil || then < at {
			next, at = c, then
		}
	}
	return next, at
}

// settle lets the excess back in, starting with the endpoint that has been out longest.
func (p *pool) settle(now int64) {
	for p.outside.n > 0 && !p.allows(p.taken(nil)) {
		c := p.outside.back
		c.breaker.Close(now)
		p.place(c, now)
	}
}

// allows reports whether that many endpoints may be ejected at the same time.
func (p *pool) allows(ejected int) bool {
	share := p.rule.MaxEjected
	if p.rule.Mode == spec.Enforce {
		share = min(share, p.site.share)
	}
	return fits(ejected, len(p.known), share)
}

// taken returns the number of endpoints ejected by this rule or another enforced one, plus one if
// extra is not among them. A rule in shadow mode refuses no call, so it counts alone.
func (p *pool) taken(extra *endpoint) int {
	n := p.outside.n
	if extra != nil && extra.in != &p.outside {
		n++
	}
	if p.rule.Mode != spec.Enforce || p.site.ejected.Load() == int64(p.counted) { // other rules have ejected none
		return n
	}
	for _, other := range p.site.pools {
		if other == p {
			continue
		}
		for c := range other.outside.all() {
			mine := p.known[c.addr]
			if mine == nil || mine.in != &p.outside && mine != extra {
				n++
			}
		}
	}
	return n
}

// add adds an endpoint, or returns nil if there is no room.
func (p *pool) add(addr string, now int64) *endpoint {
	if len(addr) > maxAddr {
		return nil
	}
	for len(p.known) >= p.rule.MaxEndpoints {
		last := p.serving.back
		if last == nil || now-last.touched <= int64(p.rule.Interval) {
			return nil
		}
		p.forget(last)
	}
	c := &endpoint{pool: p, addr: strings.Clone(addr), breaker: breaker.NewSingle(p.terms), touched: now}
	p.known[c.addr] = c
	p.serving.put(c)
	return c
}

func (p *pool) forget(c *endpoint) {
	delete(p.known, c.addr)
	c.leave()
	p.site.count(p)
	// A map after many deletions is larger than a new one.
	if p.removed++; p.removed > 1000+4*len(p.known) {
		fresh := make(map[string]*endpoint, len(p.known))
		maps.Copy(fresh, p.known)
		p.known, p.removed = fresh, 0
	}
}

// adopt continues under another revision of the rule.
func (p *pool) adopt(r Rule, t *breaker.Terms, now int64) {
	p.rule, p.terms = r, t
	p.latest = max(p.latest, now)
	for _, c := range p.known {
		c.breaker.Adopt(t, p.latest)
	}
}

// idle reports whether the pool can be dropped: no endpoint is ejected, and no call counts anymore.
func (p *pool) idle(now int64) bool {
	now = p.tidy(now)
	return p.outside.n == 0 && (p.serving.n == 0 || now-p.serving.front.touched > int64(p.rule.Interval))
}

// enforce sets the pools of the enforced rules.
func (s *site) enforce(pools []*pool) {
	n := 0
	for _, p := range s.pools {
		p.enforced, p.counted = false, 0
	}
	s.pools, s.share = pools, 1
	for _, p := range pools {
		s.share = min(s.share, p.rule.MaxEjected)
		p.enforced, p.counted = true, p.outside.n
		n += p.outside.n
	}
	s.ejected.Store(int64(n))
}

// count updates ejected after a pool has changed.
func (s *site) count(p *pool) {
	if more := p.outside.n - p.counted; p.enforced && more != 0 {
		p.counted = p.outside.n
		s.ejected.Add(int64(more))
	}
}
