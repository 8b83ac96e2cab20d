package sharing

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
)

// batch is one round trip.
type batch struct {
	member   *Member
	shard    *shard
	commands []store.Command
	keys     []keyed
	sent     int64
	woken    int64 // Member.woken when the batch was sent
	over     atomic.Bool
}

// send sends the batch. It returns at once, unless the store answers before Start returns.
func (b *batch) send() {
	m := b.member
	if !m.starts() {
		b.finish(false)
		return
	}
	var ctx context.Context
	var cancel context.CancelFunc
	patient := b.shard.unreachable.Load()
	if patient {
		// No call waits for this batch. A reply after the alarm doesn't count, but its connection
		// and the scripts it loaded remain for the next probe.
		ctx, cancel = context.WithTimeout(context.Background(), cluster.MaxTimeout)
	} else {
		ctx, cancel = context.WithCancel(context.Background())
	}
	b.woken, b.sent = m.woken.Load(), m.clock.Now()
	stop := clocks.Alarm(m.clock, m.patience(), func() {
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
		defer m.returns()
		if !m.survives(func() {
			b.locate()
			m.starter.Start(ctx, b.commands, func() { end(true) })
		}) {
			end(false)
		}
		return
	}
	b.enterStore(1)
	go func() {
		answered := false
		defer func() { // runs even if the store ends the goroutine
			b.enterStore(-1)
			end(answered)
			m.returns() // last: a batch that end sends is counted before this one is uncounted
		}()
		answered = m.survives(func() {
			b.locate()
			m.cfg.Store.Do(ctx, b.commands)
		})
	}()
}

// locate asks the store again for the shard of the batch's key if it is unknown. It panics if the
// store still fails.
func (b *batch) locate() {
	if b.shard.number == nowhere {
		b.member.cfg.Store.Shard(b.commands[0].Result().Key)
	}
}

// enterStore adds n to the number of running calls of Store.Do.
func (b *batch) enterStore(n int) {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	b.shard.within += n
}

// survives runs store code, and reports whether it returned. A panic counts as a failure of the
// store; it is logged at most once in panicEvery.
func (m *Member) survives(store func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		reason, now := recover(), m.clock.Now()
		if last := m.panicked.Load(); (last == 0 || now-last >= panicEvery) && m.panicked.CompareAndSwap(last, now) {
			m.cfg.Logger.Error("penstock: store of cluster rules panicked or ended its goroutine", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	store()
	return true
}

const panicEvery = int64(time.Minute)

// finish delivers the outcome to the keys, once. After a timeout the store may still be writing
// replies, so finish doesn't read them.
func (b *batch) finish(answered bool) {
	if !b.over.CompareAndSwap(false, true) {
		return
	}
	m := b.member
	m.mu.Lock()
	b.shard.inFlight--
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
			if o.Err != nil && !is(o.Err, store.ErrForeign) && !is(o.Err, store.ErrMoving) {
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
	// If the machine was suspended in between, the age of the replies is unknown.
	known := answered && m.woken.Load() == b.woken
	for i, c := range b.commands {
		err := errLate
		if known {
			err = c.Result().Err
		}
		b.keys[i].answered(c, b.sent, received, err)
	}
	m.flush(false)
}

// is is errors.Is for errors from the store's code: an error that panics matches nothing.
func is(err, target error) (ok bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

var (
	errLate    = errors.New("store didn't answer in time")
	errNoReply = errors.New("store reply is missing or malformed")
)

// isMembers reports whether n is a possible number of members; limits are divided by it.
func isMembers(n int64) bool { return 1 <= n && n <= mostMembers }

// checked returns the error of a command: err if the store reported one, or errNoReply if the reply
// is impossible. Units leased by an impossible reply could not be accounted for.
func checked(c store.Command, err error) error {
	if err != nil {
		return err
	}
	ok := false
	switch c := c.(type) {
	case *store.Take:
		r := &c.Reply
		ok = r.Now != 0 && r.Epoch > 0 && r.Left > 0 && int64(r.Left) <= c.Span()*int64(c.Shape.Width()) && r.Free >= 0 && r.Room >= 0 &&
			r.Granted >= 0 && r.Granted <= max(c.Need, c.Want) &&
			r.Bucket >= r.Current && r.Bucket-r.Current <= int64(c.Shape.Buckets) && isMembers(r.Active)
	case *store.Turn:
		r := &c.Reply
		ok = r.Now != 0 && r.Wait >= 0 && r.Granted >= 0 && r.Granted <= max(c.Need, c.Want)
	case *store.Tokens:
		r := &c.Reply
		ok = r.Now != 0 && r.Wait >= 0 && (r.Granted == 0 || r.Granted >= c.Need && r.Granted <= max(c.Need, c.Want) && r.Wait <= c.Within)
	case *store.Permits:
		r := &c.Reply
		ok = r.Now != 0 && r.Held >= 0 && r.Held <= max(c.Claim, c.Need, c.Want) && r.Total >= 0 && (r.Active == 0 || isMembers(r.Active))
	case *store.Presence:
		ok = c.Reply.Now != 0 && (c.Reply.Members == 0 || isMembers(c.Reply.Members))
	}
	if !ok {
		return errNoReply
	}
	return nil
}
