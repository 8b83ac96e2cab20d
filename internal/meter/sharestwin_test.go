package meter

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharesTwin is a naive semaphore with shares, for a single caller: it has lists, and goes through
// all of them.
type sharesTwin struct {
	limit    int64
	sharing  *Sharing
	nobodys  int64
	now      int64
	virtual  [Levels]float64
	latest   [Levels]float64
	busy     [Levels]int64 // for which calls have waited
	area     float64
	done     float64
	plain    []*twinCall // outside shares
	plainPay int64
	shares   []*twinShare
	unfair   string // a grant that breaks the rules of shares
	calls    int
	ids      int
	hand     int
}

type twinShare struct {
	id            int
	tenant        Tenant // with the level
	other         int    // number of the share of several tenants, from 1
	orphan        bool
	named         bool
	weight        int64
	held          int64
	used, pending float64
	at, busy      int64
	area, done    float64
	line          []*twinCall
	paid          int64
	figures       shareCounts
}

type twinCall struct {
	caller int
	units  int64
	first  bool
	paid   int64
	share  *twinShare
	state  state
}

func (x *twinShare) key() float64 { return x.used + x.pending }
func (x *twinShare) active() bool { return x.held > 0 || len(x.line) > 0 }

func (m *sharesTwin) sums() (held int64, active, waiting int) {
	for _, x := range m.shares {
		if x.active() {
			active++
		}
		held += x.held
		waiting += len(x.line)
	}
	return held, active, waiting
}

// sumsOf returns the sums of one level.
func (m *sharesTwin) sumsOf(level int) (held, weights int64) {
	for _, x := range m.shares {
		if x.tenant.Level == level && x.active() {
			weights += x.weight
			held += x.held
		}
	}
	return held, weights
}

func (m *sharesTwin) used() int64 { held, _, _ := m.sums(); return held + m.nobodys }

func (m *sharesTwin) pass(now int64) {
	if now <= m.now {
		return
	}
	for level := range m.virtual {
		if held, weights := m.sumsOf(level); m.waits(level) {
			m.busy[level] += now - m.now
			m.virtual[level] += growth * float64(now-m.now) * float64(held) / float64(weights)
		}
	}
	m.now = now
}

func (m *sharesTwin) settle(x *twinShare) bool {
	area := float64(m.now-x.at) * float64(x.held)
	used := float64(m.busy[x.tenant.Level]-x.busy) * float64(x.held)
	x.used += used / float64(x.weight)
	x.area += area
	m.area += area
	x.at, x.busy = m.now, m.busy[x.tenant.Level]
	return used > 0
}

// waits reports whether a call of a level waits.
func (m *sharesTwin) waits(level int) bool {
	return slices.ContainsFunc(m.shares, func(x *twinShare) bool { return x.tenant.Level == level && len(x.line) > 0 })
}

// insert puts a call into a line, ahead of the calls that pay for it; see queueTwin.
func insert(line []*twinCall, paid int64, c *twinCall) []*twinCall {
	if !c.first {
		return append(line, c)
	}
	at, due := 0, paid+c.units
	for i, w := range line {
		if w.first {
			at, due = i+1, w.paid+c.units
		}
	}
	for at < len(line) && due > line[at].units {
		due -= line[at].units
		at++
	}
	if c.paid = due; at == len(line) {
		c.paid = 0
	}
	return slices.Insert(line, at, c)
}

// remove takes a call out of a line, and returns the payments of the first one.
func remove(line *[]*twinCall, paid int64, c *twinCall, served bool) int64 {
	i := slices.Index(*line, c)
	*line = slices.Delete(*line, i, i+1)
	switch {
	case c.first && served:
		paid = c.paid
	case c.first:
	case i > 0:
		for i--; i >= 0 && (*line)[i].first && (*line)[i].paid > 0; i-- {
			(*line)[i].paid = 0
		}
		if i < 0 {
			paid = 0
		}
	default:
		paid = 0
	}
	return paid
}

func (m *sharesTwin) find(t Tenant) *twinShare {
	weight, named := m.sharing.weight(&t)
	if !m.sharing.Levels {
		t.Level = 0
	}
	own := 0
	for _, x := range m.shares {
		if x.other == 0 && !x.named {
			own++
		}
		if x.other == 0 && !x.orphan && x.tenant.Name == t.Name && x.tenant.Level == t.Level {
			if m.sharing.ByClass {
				x.tenant.Class = t.Class
				m.weigh(x, weight)
			}
			return x
		}
	}
	other := 0
	if !named && own >= m.sharing.MaxShares {
		weight, other = 1, int(t.Name.Hash()%otherShares)+1
		for _, x := range m.shares {
			if x.other == other && !x.orphan && x.tenant.Level == t.Level {
				return x
			}
		}
	}
	m.ids++
	m.shares = append(m.shares, &twinShare{id: m.ids, tenant: t, other: other, named: named, weight: weight, at: m.now, busy: m.busy[t.Level]})
	return m.shares[len(m.shares)-1]
}

// forget drops what is not worth keeping, where the semaphore does.
func (m *sharesTwin) forget() {
	for looks := 0; looks < 2 && len(m.shares) > 0; looks++ {
		if m.hand++; m.hand >= len(m.shares) {
			m.hand = 0
		}
		x, last := m.shares[m.hand], len(m.shares)-1
		if !x.active() && (x.orphan || len(m.shares) > keptShares && x.key() <= m.virtual[x.tenant.Level]) {
			m.shares[m.hand] = m.shares[last]
			m.shares = m.shares[:last]
		}
	}
}

func (m *sharesTwin) weigh(x *twinShare, weight int64) {
	if weight != x.weight {
		m.settle(x)
		x.pending *= float64(x.weight) / float64(weight)
		x.weight = weight
	}
}

func (m *sharesTwin) set(limit int64, c *Sharing) {
	old := m.sharing
	m.limit, m.sharing = limit, c
	for _, x := range m.shares {
		if c == nil {
			break
		}
		if x.orphan = x.orphan || old == nil || old.By != c.By || old.Levels != c.Levels; !x.orphan {
			weight, named := c.weight(&x.tenant)
			if x.other > 0 {
				weight = 1
			}
			x.named = named
			m.weigh(x, weight)
		}
	}
	for _, w := range slices.Clone(m.plain) {
		if w.units > limit {
			m.leave(w, false)
		}
	}
	for _, x := range m.shares {
		for _, w := range slices.Clone(x.line) {
			if w.units > limit {
				m.leave(w, false)
			}
		}
	}
	m.advance()
}

// leave ends a call, wherever it is.
func (m *sharesTwin) leave(w *twinCall, advance bool) {
	x := w.share
	switch {
	case w.state == granted && x == nil:
		m.nobodys -= w.units
	case w.state == granted:
		m.settle(x)
		x.pending -= x.pending * float64(w.units) / float64(x.held)
		x.done += float64(w.units)
		m.done += float64(w.units)
		if x.done >= 2*recently {
			x.area, x.done = x.area/2, x.done/2
		}
		if m.done >= 2*recently {
			m.area, m.done = m.area/2, m.done/2
		}
		if x.held -= w.units; x.held == 0 {
			x.pending, m.latest[x.tenant.Level] = 0, max(m.latest[x.tenant.Level], x.used)
		}
	case w.state == waits && x == nil:
		m.plainPay = remove(&m.plain, m.plainPay, w, false)
	case w.state == waits:
		m.settle(x)
		x.paid = remove(&x.line, x.paid, w, false)
		x.figures.expired++
	}
	w.state = gone
	m.idle()
	if advance {
		m.advance()
	}
}

// idle makes all even once no share is active.
func (m *sharesTwin) idle() {
	for level := range m.virtual {
		if _, weights := m.sumsOf(level); weights == 0 {
			m.virtual[level] = max(m.virtual[level], m.latest[level])
		}
	}
	if _, active, _ := m.sums(); active == 0 && m.sharing == nil {
		*m = sharesTwin{limit: m.limit, nobodys: m.nobodys, plain: m.plain, plainPay: m.plainPay, calls: m.calls, unfair: m.unfair}
	}
}

func (m *sharesTwin) join(w *twinCall, c Claim, t Tenant) string {
	m.forget()
	x := m.find(t)
	w.share = x
	_, _, waiting := m.sums()
	waiting += len(m.plain)
	switch {
	case w.units > m.limit:
		x.figures.refused++
		m.advance()
		return "refused"
	case len(x.line) == 0:
		m.settle(x)
		from := m.virtual[x.tenant.Level]
		first := math.Inf(1)
		for _, y := range m.shares {
			if y.tenant.Level == x.tenant.Level && len(y.line) > 0 {
				first = min(first, y.key())
			}
		}
		if from = min(from, first+m.expected(x)/2); x.key() < from {
			x.used = from - x.pending
		}
		x.paid = 0
	default:
		m.settle(x)
	}
	if waiting == 0 && m.used()+w.units <= m.limit {
		m.grant(w)
		return "got"
	}
	x.line = insert(x.line, x.paid, w)
	if m.advance(); w.state == granted {
		return "got"
	}
	_, _, waiting = m.sums()
	longest := x
	for _, y := range m.shares {
		if lower := cmp.Compare(y.tenant.Level, longest.tenant.Level); lower != 0 || len(y.line) == 0 {
			if lower > 0 && len(y.line) > 0 {
				longest = y
			}
			continue
		}
		length := cmp.Compare(int64(len(y.line))*longest.weight, int64(len(longest.line))*y.weight)
		if length > 0 || length == 0 && longest != x && y.id > longest.id {
			longest = y
		}
	}
	switch {
	case len(x.line) > min(c.Queue, m.sharing.PerShare), waiting+len(m.plain) > c.Queue && longest == x:
		m.settle(x)
		x.paid = remove(&x.line, x.paid, w, false)
		w.state = gone
		x.figures.refused++
		m.idle()
		m.advance()
		return "refused"
	case waiting+len(m.plain) > c.Queue:
		last := longest.line[len(longest.line)-1]
		m.settle(longest)
		longest.paid = remove(&longest.line, longest.paid, last, false)
		last.state = displaced
		longest.figures.displaced++
		m.idle()
		m.advance()
	}
	if w.state == granted {
		return "got"
	}
	return "queued"
}

func (m *sharesTwin) grant(w *twinCall) {
	x := w.share
	m.settle(x)
	if level := x.tenant.Level; m.waits(level) {
		m.virtual[level] = max(m.virtual[level], x.key())
	}
	m.ids++
	x.id = m.ids
	x.pending += float64(w.units) * m.expected(x) / float64(x.weight)
	x.held += w.units
	x.figures.served++
	w.state = granted
}

// expected returns the mean time of a unit.
func (m *sharesTwin) expected(x *twinShare) float64 {
	switch {
	case x.done > 0:
		return x.area / x.done
	case m.done > 0:
		return m.area / m.done
	}
	return 0
}

func (m *sharesTwin) advance() {
	plain := func() bool {
		for len(m.plain) > 0 && m.used()+m.plain[0].units <= m.limit {
			w := m.plain[0]
			m.plainPay = remove(&m.plain, m.plainPay, w, true)
			m.nobodys += w.units
			w.state = granted
		}
		return len(m.plain) == 0
	}
	if m.sharing != nil && !plain() {
		return
	}
	for x := m.pick(); x != nil; x = m.pick() {
		w := x.line[0]
		if m.used()+w.units > m.limit {
			return
		}
		m.checkFair(x)
		m.grant(w)
		x.paid = remove(&x.line, x.paid, w, true)
	}
	if m.sharing == nil {
		plain()
		m.idle()
	}
}

// least returns the waiting share that precedes all others.
func (m *sharesTwin) least(before func(a, b *twinShare) int) (least *twinShare) {
	for _, x := range m.shares {
		if len(x.line) > 0 && (least == nil || before(x, least) < 0) && x.tenant.Level == m.highest() {
			least = x
		}
	}
	return least
}

// highest returns the highest level that waits.
func (m *sharesTwin) highest() int {
	level := Levels
	for _, x := range m.shares {
		if len(x.line) > 0 {
			level = min(level, x.tenant.Level)
		}
	}
	return level
}

func (m *sharesTwin) pick() *twinShare {
	perWeight := func(a, b *twinShare) int { return cmp.Compare(a.held*b.weight, b.held*a.weight) }
	key := func(a, b *twinShare) int { return cmp.Compare(a.key(), b.key()) }
	id := func(a, b *twinShare) int { return cmp.Compare(a.id, b.id) }
	byKey := func(a, b *twinShare) int { return cmp.Or(key(a, b), perWeight(a, b), id(a, b)) }
	x := m.least(byKey)
	for looks := 0; looks < maxSettled && x != nil && m.settle(x); looks++ {
		x = m.least(byKey)
	}
	if x == nil || m.below(x) {
		return x
	}
	return m.least(func(a, b *twinShare) int { return cmp.Or(perWeight(a, b), key(a, b), id(a, b)) })
}

// below compares exactly.
func (m *sharesTwin) below(x *twinShare) bool {
	all, _, _ := m.sums()
	held, weights := m.sumsOf(x.tenant.Level)
	return big.NewRat(x.held, x.weight).Cmp(big.NewRat(max(0, m.limit-(all-held)), weights)) < 0
}

// checkFair records a grant while a call of a higher level waits, or to a share at or above its fair
// part while one of its level below waits.
func (m *sharesTwin) checkFair(x *twinShare) {
	for _, y := range m.shares {
		if len(y.line) > 0 && y.tenant.Level < x.tenant.Level {
			m.unfair = fmt.Sprintf("level %d is served before level %d", x.tenant.Level, y.tenant.Level)
		}
	}
	if m.below(x) {
		return
	}
	for _, y := range m.shares {
		if len(y.line) > 0 && y.tenant.Level == x.tenant.Level && m.below(y) {
			m.unfair = fmt.Sprintf("%v holds %d and is served before %v, which holds %d", x.tenant.Name, x.held, y.tenant.Name, y.held)
		}
	}
}

// Random scripts of calls of several sizes and tenants, with weights, priorities, cancellations and
// reloads, do the same on a semaphore as on its naive twin, and the twin finds every grant fair.
// known bug 295
func TestSharesAreTheirTwin(t *testing.T) {
	r := random(t)
	looks, wrong := 0, 0
	for round := range rounds(6000) {
		s := &sharesScript{Rand: r, twin: &sharesTwin{}, tenants: 1 + r.Int64N(6)}
		if round%8 == 0 {
			s.tenants = 60
		}
		s.run(func(format string, args ...any) {
			t.Helper()
			require.Fail(t, fmt.Sprintf(format, args...), "round %d:\n%s", round, s.log.String())
		})
		looks, wrong = looks+s.looks, wrong+s.wrong
	}
	t.Logf("%d of %d looks were contradicted", wrong, looks)
	// Hashes differ from process to process, and with them which tenants share a share: 32 to 49 of 72,000.
	assert.LessOrEqual(t, wrong*1000, looks, "a look estimates, with keys that may be late")
}
