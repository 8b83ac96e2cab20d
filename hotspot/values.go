package hotspot

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// values holds a cell with the state of each value, in shards that have a lock each. Callers choose
// values but can't predict a value's shard. Safe for concurrent use.
//
// The number of cells is bounded. A value that arrives when all are taken gets the cell of a value
// that can be evicted, if a short search finds one. Otherwise it gets none: all values of a shard
// without a cell share one, the shard's rest, and thus one limit.
//
// Invariant, under the lock of the shard: for a value without a cell, the rest is at least as strict
// as the value's own cell would be, regardless of the units it has taken. For
//
//   - a value is evicted only when its window is empty or its bucket would be full, its turn is past
//     and none of its units are in flight; the latest turn ever evicted is kept (floor), for calls
//     of many units, and so is the time of the eviction, as no window of its value may begin
//     earlier;
//   - units that a value takes while it has no cell, it takes from the rest;
//   - a new cell starts as a copy of the rest: all units that the rest gave may have gone to its value;
//   - the count of a quota is evicted when its period is over or nothing is used, and no count begins
//     earlier than the latest eviction or the latest period evicted;
//   - a full token bucket that is evicted has decided on calls up to some time, and the rest decides
//     on no call at an earlier time.
//
// So no value ever gets more because it is evicted or returns, or because others do. Values that
// share the rest may get less.
type values struct {
	shards       []shard // length is a power of two
	unknownPlans shared.Int64
	questions    questions
	lockouts     shared.Int64
	// lockoutsMissed counts the intervals in which a value would have been locked out, had not half of
	// its shard's values been.
	lockoutsMissed shared.Int64
}

type shard struct {
	mu    shared.Mutex
	cells index
	ring  []*cell // the cells that count towards the cap, in the order of the hand
	hand  int     // index in ring of the cell to examine next
	room  int     // the most cells that ring may have

	waited waiting // calls that waited for the lock

	rule *controller // the latest rule, which sets the rate of the token buckets

	rest      cell          // of all values without a cell; its bucket is the window
	window    *stat.Window  // of the units that the rest gave, nil until it gives any
	interval  time.Duration // of the window
	restAt    int64         // time of the latest units from the rest
	floor     meter.Moment  // the latest turn of an evicted value
	forgotten int64         // time of the latest eviction
	era       uint64        // incremented when no more units of the rest are in flight

	// hot is nil while no value is contended; see lend.go. It changes under the lock, and lies far
	// from it, as other goroutines write there.
	hot shared.Pointer[hotValue]

	asking     map[argument.Value]bool // values that a question is about; see limits.go
	locks      []int64                 // ends of the lockouts of cells in the ring
	overflowed int64                   // calls that took from the rest
	largest    int64                   // units of the largest call in a throttle with a unit

	_ [48]byte // keeps the locks of two shards out of one cache line
}

// cell is the state of one value.
type cell struct {
	shard *shard
	value argument.Value
	hash  uint64
	named bool // by the rule, and not in the ring

	strict  *window // nil until units are taken
	bucket  bucket  // used if the rule has no windows
	filling filling
	queue   *meter.Pacer       // of a throttle, nil until a turn is taken
	tokens  *meter.TokenBucket // of a token bucket, nil until the value has one
	period  *calendar.Meter    // of a quota, nil until units are taken
	refunds *meter.Refunds     // of tokens, if the rule has a unit; otherwise nil
	plan    *plan              // that the latest call named, if its rule lists it, or code has set; otherwise nil
	extras  *extras            // nil unless the rule needs them
	held    int64              // units in flight
	era     uint64             // of the shard when the cell was created, if units of the rest were in flight

	lease *valueLease // for a limit that a cluster shares, nil until used
	used  int64       // time of the last call

	passed, refused int64 // calls
	heat            heat
	refusal         *refusal // nil until the value is refused
}

const (
	// A cell is looked up under its shard's lock. With more shards than processors, two calls
	// rarely meet there; but a shard of few cells may fill up by chance.
	maxShards     = 64
	cellsPerShard = 128

	// maxLook is the number of cells that a call examines to find one to evict. The hand advances
	// with each call, so under pressure all are examined in turn.
	maxLook = 8
)

func newValues(most int, rule *controller) *values {
	n := 1
	for n < maxShards && n*cellsPerShard < most {
		n *= 2
	}
	vs := &values{shards: make([]shard, n)}
	for i := range vs.shards {
		s := &vs.shards[i]
		s.floor, s.forgotten = meter.LongAgo(), never
		s.era = 1
		s.rule = rule
		s.rest = cell{shard: s, bucket: bucket{filled: never}}
	}
	vs.resize(most)
	return vs
}

// resize changes the maximum number of cells. Excess cells are removed once they can be evicted.
func (vs *values) resize(most int) {
	for i := range vs.shards {
		s := &vs.shards[i]
		s.mu.Lock()
		s.room = max(1, most/len(vs.shards))
		s.mu.Unlock()
	}
}

// name sets the values that the rule names: their cells are permanent and don't count towards the
// cap. They are created when the values arrive.
func (vs *values) name(named map[argument.Value]*quota) {
	for i := range vs.shards {
		s := &vs.shards[i]
		s.mu.Lock()
		s.cells.all(func(c *cell) {
			switch is := named[c.value] != nil; {
			case is && !c.named:
				s.leaveRing(c)
			case !is && c.named:
				s.ring = append(s.ring, c)
			}
			c.named = named[c.value] != nil
		})
		s.mu.Unlock()
	}
}

func (vs *values) shard(hash uint64) *shard { return &vs.shards[hash&uint64(len(vs.shards)-1)] }

// obtainLocked returns the cell of a value, created if there is room or room can be made; otherwise
// the rest. The rule decides which cells can be evicted.
func (s *shard) obtainLocked(v argument.Value, hash uint64, now int64, q *quota, rule *controller) *cell {
	if c := s.cells.find(&v, hash); c != nil {
		s.settle(c)
		return c
	}
	rule.found(&v)
	if q.named {
		c := s.add(v, hash, now, q)
		c.named = true
		return c
	}
	if rule.returns(&v, now) {
		c := s.add(v, hash, now, q)
		s.ring = append(s.ring, c)
		return c
	}
	for looks := min(maxLook, len(s.ring)); looks > 0 && len(s.ring) >= s.room; looks-- {
		if s.hand++; s.hand >= len(s.ring) {
			s.hand = 0
		}
		c := s.ring[s.hand]
		s.settle(c)
		if rule.forgettableLocked(c, now) {
			s.forget(c, now, rule)
		}
	}
	if len(s.ring) >= s.room || rule.bookFull(now) {
		s.overflowed++
		rule.raiseRestLocked(s, &v, now)
		return &s.rest
	}
	c := s.add(v, hash, now, q)
	s.ring = append(s.ring, c)
	return c
}

// newCell returns a new cell: a copy of the rest, unless the rule has always named the value. Its
// first turn is after firstAfter.
func (s *shard) newCell(now int64, q *quota) cell {
	c := cell{shard: s, bucket: bucket{filled: never}, heat: heat{tick: now >> heatTick}}
	if q.private {
		return c
	}
	if s.rest.strict != nil {
		c.strict = s.rest.strict.copy()
	} else {
		c.bucket = s.newBucketLocked(now)
	}
	s.rule.raiseRestLocked(s, nil, now)
	if s.rest.period != nil {
		used := *s.rest.period
		used.Keep(nil, now)
		c.period = &used
	}
	if s.rest.held > 0 {
		c.era = s.era
	}
	return c
}

func (s *shard) firstAfter(q *quota) meter.Moment {
	if q.private {
		return meter.LongAgo()
	}
	return s.rest.last()
}

func (s *shard) add(v argument.Value, hash uint64, now int64, q *quota) *cell {
	c := s.made(v.Clone(), hash, now, q)
	if c.strict != nil {
		c.strict.cell = &c
	}
	if s.rule.book != nil {
		s.rule.keepPeriodLocked(&c, now)
	}
	s.cells.add(&c)
	return &c
}

// made returns a new cell for a value.
func (s *shard) made(v argument.Value, hash uint64, now int64, q *quota) cell {
	c := s.newCell(now, q)
	c.value, c.hash = v, hash
	s.rule.restoreLocked(&c, now)
	if first := s.firstAfter(q); first != meter.LongAgo() {
		turns := c.queueLocked(q)
		if turns.NotBefore(first); s.rest.queue != nil {
			turns.InheritBurst(s.rest.queue)
		}
	}
	if q.unit != (meter.Moment{}) {
		c.tokenBucketLocked(now, q)
	}
	return c
}

// forget evicts the cell under the hand.
func (s *shard) forget(c *cell, now int64, rule *controller) {
	s.cool(c)
	s.floor, s.forgotten = s.floor.Later(c.last()), max(s.forgotten, now)
	if c.period != nil {
		begun, _ := c.period.Begun()
		s.forgotten = max(s.forgotten, begun)
		c.period.Leave(now)
	}
	if s.rest.strict != nil {
		s.rest.strict.roll(s.forgotten) // for copies of it
	}
	if c.tokens != nil {
		s.rest.tokenBucketLocked(now, &rule.restQuota).GoOnFrom(c.tokens, now)
	}
	s.cells.remove(c)
	last := len(s.ring) - 1
	s.ring[s.hand] = s.ring[last]
	s.ring[last] = nil
	s.ring = s.ring[:last]
}

// leaveRing takes a cell out of the ring, which happens when rules are loaded.
func (s *shard) leaveRing(c *cell) {
	if i := slices.Index(s.ring, c); i >= 0 {
		s.ring = slices.Delete(s.ring, i, i+1)
	}
}

// turnsLocked returns the pacer of the cell's queue, with the burst of its limit.
func (c *cell) turnsLocked(now int64, q *quota) *meter.Pacer {
	turns := c.queueLocked(q)
	turns.SetBurst(now, q.burst, q.turn)
	return turns
}

// queueLocked is turnsLocked with the burst as it was; a new queue has that of the limit.
func (c *cell) queueLocked(q *quota) *meter.Pacer {
	if c.queue == nil {
		turns := meter.MakePacer(&c.shard.mu)
		turns.StartBurst(q.burst, q.turn)
		c.queue = &turns
	}
	if c.isRest() {
		c.queue.NotBefore(c.shard.floor)
	}
	return c.queue
}

// restFollows reports whether the turns of the rest come after m, once that is the floor.
func (s *shard) restFollows(m meter.Moment) bool {
	return s.rest.queue == nil || s.rest.queue.Follow(m)
}

// last returns the turn that the next one must follow. For the rest, that is no earlier than the
// floor, because the rest stands for evicted values as well.
func (c *cell) last() meter.Moment {
	last := meter.LongAgo()
	if c.queue != nil {
		last = c.queue.Last()
	}
	if c.isRest() {
		return last.Later(c.shard.floor)
	}
	return last
}

// paid returns the end of the time that the turns so far take up.
func (c *cell) paid() meter.Moment {
	if c.queue == nil {
		return c.last()
	}
	return c.last().Later(c.queue.Paid())
}

// wait returns the wait of n units for their turn; first means that the call is prioritized.
func (c *cell) wait(now, n int64, q *quota, first bool) time.Duration {
	if first && c.queue != nil && !c.queue.Empty() {
		return c.queue.Wait(now, q.cost(n), first)
	}
	return q.wait(c.last(), now, n)
}

func (c *cell) isRest() bool { return c == &c.shard.rest }

// each calls f for every cell and the rests, under the lock of their shard.
func (vs *values) each(now int64, f func(*cell)) {
	for i := range vs.shards {
		s := &vs.shards[i]
		s.lock()
		s.rests(now)
		s.cells.all(f)
		f(&s.rest)
		s.mu.Unlock()
	}
}
