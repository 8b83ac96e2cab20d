package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
)

// shard is a part of the store that answers or not as a whole: whether it is away, and
// what is to be sent there.
//
// A store is away after mostFailures in a row; one that is slow fails too. From then on nobody asks it
// and nobody waits for it. Every now and then, at a moment drawn by chance, one command is let through,
// and with its answer the store is back.
type shard struct {
	number  int
	away    atomic.Bool
	trouble atomic.Pointer[string] // the latest error
	probeAt atomic.Int64           // from when on a command is let through while it is away

	// Under Member.mu:
	due      []keyed
	hurry    bool // calls wait for some of those
	flying   int  // batches that are not finished
	failures int
	calling  int // calls of the store that have not returned
	probing  bool
	since    int64 // it is in this state
	outages  int64
	clock    storeClock
}

const (
	mostFailures = 5
	mostInBatch  = 64
	mostCalling  = 64 // of a store that is away, and perhaps never returns
	probeEvery   = int64(time.Second)
	never        = int64(1<<63 - 1)
)

// keyed is what a member knows of one key: it makes commands, one at a time.
type keyed interface {
	// command is the one to send now, nil if there is none.
	command(now int64) Command
	// answered says what has become of it. With an error there is no reply, and nothing of the
	// command may be read that a store writes.
	answered(c Command, sent, received int64, err error)
}

// nowhere is the number of the shard of keys of which the store couldn't say where they are: it
// panicked. Each of them has batches of its own, as nobody knows whether two may be in one. Before
// each the store is asked once more, and as long as it panics it is away.
const nowhere = -1

// shardOf is where a key is.
func (m *Member) shardOf(key string) *shard {
	number := m.askShard(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shards[number]
	if s == nil {
		s = &shard{number: number}
		m.shards[number] = s
	}
	return s
}

// askShard is what the store says, or nowhere. The first batch tells of the panic: rules are being
// loaded now, and a log handler may load some.
func (m *Member) askShard(key string) (number int) {
	number = nowhere
	defer func() { _ = recover() }()
	return m.cfg.Store.Shard(key)
}

func (m *Member) allShards() (all []*shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shards {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *shard) int { return a.number - b.number })
	return all
}

// post notes that a key has something to send, for the next flush; hurry says that somebody waits for
// it. It returns false if the store is away and nobody is to ask it.
func (m *Member) post(s *shard, k keyed, now int64, hurry bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.away.Load() {
		if s.probing || now < s.probeAt.Load() || s.calling >= mostCalling {
			return false
		}
		s.probing = true
	}
	s.due = append(s.due, k)
	s.hurry = s.hurry || hurry
	return true
}

// flush sends what was posted, in batches. What nobody waits for stays while another batch of its
// shard is on its way, unless there is a whole batch of it: finish sends it. So a member with many
// keys makes few round trips, of many commands each. With all, nothing stays. The caller holds no
// lock.
func (m *Member) flush(all bool) {
	for {
		s, keys := m.takeDue(all)
		if s == nil {
			return
		}
		now := m.now()
		b := &batch{member: m, shard: s, commands: make([]Command, 0, len(keys)), keys: keys[:0]}
		for _, k := range keys {
			if c := k.command(now); c != nil {
				b.commands = append(b.commands, c)
				b.keys = append(b.keys, k)
			}
		}
		if len(b.commands) == 0 {
			m.mu.Lock()
			s.probing = false
			s.flying--
			m.mu.Unlock()
			continue
		}
		b.send()
	}
}

// takeDue takes keys of one shard off those that are due, for a batch.
func (m *Member) takeDue(all bool) (*shard, []keyed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shards {
		most := mostInBatch
		if s.number == nowhere {
			most = 1
		}
		n := min(len(s.due), most)
		if n == 0 || n < most && s.flying > 0 && !s.hurry && !all {
			continue
		}
		keys := slices.Clone(s.due[:n])
		s.due = slices.Delete(s.due, 0, n)
		s.hurry = s.hurry && len(s.due) > 0
		s.flying++
		return s, keys
	}
	return nil, nil
}

// batch is one round trip.
type batch struct {
	member   *Member
	shard    *shard
	commands []Command
	keys     []keyed
	sent     int64
	over     atomic.Bool
}

// send sends it, and doesn't wait unless the store answers at once.
func (b *batch) send() {
	m := b.member
	m.requests.Add(int64(len(b.commands)))
	ctx, cancel := context.WithCancel(context.Background())
	patient := b.shard.away.Load()
	if patient {
		// Nobody waits. An answer that comes after Timeout is too late, as ever; but the connection
		// that was made for it, and the scripts that were loaded, are there for the next probe.
		ctx, cancel = context.WithTimeout(context.Background(), MaxTimeout)
	}
	b.sent = m.clock.Now()
	stop := clocks.Alarm(m.clock, m.cfg.Timeout, func() {
		if !patient {
			cancel()
		}
		b.finish(false)
	})
	end := func(answered bool) {
		stop()
		cancel()
		b.finish(answered)
	}
	if m.starter != nil {
		if !m.calls(func() {
			b.locate()
			m.starter.Start(ctx, b.commands, func() { end(true) })
		}) {
			end(false)
		}
		return
	}
	b.calling(1)
	m.running.Go(func() {
		answered := false
		defer func() { // also where the store ends the goroutine
			b.calling(-1)
			end(answered)
		}()
		answered = m.calls(func() {
			b.locate()
			m.cfg.Store.Do(ctx, b.commands)
		})
	})
}

// locate asks the store where the key of the batch is, if it couldn't say so before. It panics if
// the store still can't.
func (b *batch) locate() {
	if b.shard.number == nowhere {
		b.member.cfg.Store.Shard(b.commands[0].Result().Key)
	}
}

// calling notes that n calls of the store more have not returned.
func (b *batch) calling(n int) {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	b.shard.calling += n
}

// calls calls the store's code, and reports whether it returned. A panic is that of somebody else's code: it
// counts as a failure of the store, and is told once in panicEvery.
func (m *Member) calls(store func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		reason, now := recover(), m.clock.Now()
		if last := m.panicked.Load(); (last == 0 || now-last >= panicEvery) && m.panicked.CompareAndSwap(last, now) {
			m.cfg.Logger.Error("penstock: the store of cluster rules panicked, or ended its goroutine", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	store()
	return true
}

const panicEvery = int64(time.Minute)

// finish tells the keys what has become of their commands, once. Where time is over, the store may be
// writing replies still, and nobody looks at them.
func (b *batch) finish(answered bool) {
	if !b.over.CompareAndSwap(false, true) {
		return
	}
	m := b.member
	m.mu.Lock()
	b.shard.flying--
	m.mu.Unlock()
	received := m.now()
	good, why := answered, error(nil)
	if !answered {
		why = errLate
	}
	for _, c := range b.commands {
		if answered {
			o := c.Result()
			o.Err = checked(c, o.Err)
			if o.Err != nil && !errors.Is(o.Err, ErrForeign) {
				good, why = false, o.Err
			}
		}
	}
	if answered {
		if now, ok := saysNow(b.commands); ok && m.stepped(b.shard, now, b.sent, received) {
			m.dropLeases(b.shard)
		}
	}
	m.judge(b.shard, good, received, why)
	for i, c := range b.commands {
		err := errLate
		if answered {
			err = c.Result().Err
		}
		b.keys[i].answered(c, b.sent, received, err)
	}
	m.flush(false)
}

var (
	errLate    = errors.New("the store didn't answer in time")
	errNoReply = errors.New("the store said nothing, or what can't be")
)

// checked is the error of a command that a store has executed as it says: there is one too if what stands there is no
// reply. Nothing that is leased by such a one could be counted.
func checked(c Command, err error) error {
	if err != nil {
		return err
	}
	ok := false
	switch c := c.(type) {
	case *Take:
		r := &c.Reply
		ok = r.Now != 0 && r.Epoch > 0 && r.Left > 0 && r.Left <= c.Shape.Width() && r.Free >= 0 && r.Room >= 0 &&
			r.Granted >= 0 && r.Granted <= max(c.Need, c.Want) &&
			r.Bucket >= r.Current && r.Bucket-r.Current <= int64(c.Shape.Buckets)
	case *Turn:
		r := &c.Reply
		ok = r.Now != 0 && r.Wait >= 0 && r.Granted >= 0 && r.Granted <= max(c.Need, c.Want)
	case *Permits:
		r := &c.Reply
		ok = r.Now != 0 && r.Held >= 0 && r.Held <= max(c.Claim, c.Need, c.Want)
	case *Presence:
		ok = c.Reply.Now != 0 && c.Reply.Members >= 0
	}
	if !ok {
		return errNoReply
	}
	return nil
}

// judge notes whether the store has answered, and if not, why.
func (m *Member) judge(s *shard, good bool, now int64, why error) {
	if !good {
		trouble := fmt.Sprint(why) // which survives an error that panics
		s.trouble.Store(&trouble)
	}
	m.mu.Lock()
	s.probing = false
	turned := false
	switch {
	case good:
		s.failures = 0
		turned = s.away.Load()
	case s.away.Load():
		s.probeAt.Store(now + probeEvery/2 + m.random.Int64N(probeEvery/2))
	default:
		s.failures++
		turned = s.failures == mostFailures
		s.probeAt.Store(now + probeEvery/2 + m.random.Int64N(probeEvery/2))
	}
	if turned {
		s.away.Store(!good)
		s.since = now
		if !good {
			s.outages++
		}
	}
	m.mu.Unlock()
	switch {
	case turned && good:
		m.cfg.Logger.Info("penstock: the store of cluster rules is back", "shard", s.number)
	case turned:
		m.cfg.Logger.Warn("penstock: the store of cluster rules is away: they do as their onFailure says", "shard", s.number,
			"error", why, "timeout", m.cfg.Timeout)
	}
}

// why is the latest error while the store is away, else empty.
func (s *shard) why() string {
	if trouble := s.trouble.Load(); trouble != nil && s.away.Load() {
		return *trouble
	}
	return ""
}

// storeClock is how far the store's clock is ahead of the member's: between low and high, at a time.
type storeClock struct {
	known     bool
	low, high int64
	at        int64
	steps     int64
}

// The clocks' rates differ by a thousandth at most, and a clock that was set by less than stepTolerance
// has not been set.
const (
	drift         = 1000
	stepTolerance = int64(5 * time.Millisecond)
)

// stepped notes what the store's clock shows, and reports whether it was set since the last
// time.
func (m *Member) stepped(s *shard, shows, sent, received int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &s.clock
	low, high := shows-received, shows-sent
	may := stepTolerance + (received-c.at)/drift
	step := c.known && (low > c.high+may || high < c.low-may)
	if step {
		c.steps++
	}
	c.known, c.low, c.high, c.at = true, low, high, received
	return step
}

// storeTime is what the store's clock shows at now, as far as the member knows.
func (m *Member) storeTime(s *shard, now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now + (s.clock.low+s.clock.high)/2
}

// saysNow is what the store's clock showed at the last command that it has executed.
func saysNow(batch []Command) (now int64, ok bool) {
	for _, c := range batch {
		if c.Result().Err != nil {
			continue
		}
		ok = true
		switch c := c.(type) {
		case *Take:
			now = c.Reply.Now
		case *Turn:
			now = c.Reply.Now
		case *Permits:
			now = c.Reply.Now
		case *Presence:
			now = c.Reply.Now
		}
	}
	return now, ok
}
