package sharing

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/cluster/store"
)

// place is a limit's shard, by the store's latest answer. A Redis Cluster moves keys between
// servers, and at the start their places are unknown. So the store is asked before each command,
// see Member.follow.
type place struct {
	key string
	on  atomic.Pointer[shard]
}

// where returns the place of a limit.
func (p *place) where() *place { return p }

// shard returns the key's shard.
func (p *place) shard() *shard { return p.on.Load() }

// find asks the store for the shard of a key. The caller holds no lock, as this runs the store's
// code.
func (m *Member) find(key string) *shard { return m.shard(m.askShard(key)) }

// nowhere is the shard number of keys that the store couldn't place because it panicked. Each such
// key has batches of its own, as two of them may not belong in one. The store is asked again before
// each batch, and is unreachable while it panics.
const nowhere = -1

// askShard returns the store's answer, or nowhere. A panic is logged with the first batch, not
// here: rules are being loaded now, and a log handler may load some.
func (m *Member) askShard(key string) (number int) {
	number = nowhere
	defer func() { _ = recover() }()
	return m.cfg.Store.Shard(key)
}

// shard returns the shard with a number, and makes it if there is none.
func (m *Member) shard(number int) *shard {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shards[number]
	if s == nil {
		s = &shard{number: number}
		if m.gone {
			s.abandon()
		}
		m.shards[number] = s
	}
	return s
}

// follow moves a key that was due on a shard to the shard that the store names now, and reports
// whether that is another. It gives up the key's leases, as the shards' clocks may differ. If the
// new shard is unreachable, the command fails at once.
func (m *Member) follow(k keyed, from *shard, now int64) (moved bool) {
	p := k.where()
	number := m.askShard(p.key)
	if number == from.number {
		return false
	}
	to := m.shard(number)
	m.mu.Lock()
	if !to.clock.known { // the old shard's clock is better than none
		to.clock.low, to.clock.high = from.clock.low, from.clock.high
	}
	m.mu.Unlock()
	p.on.Store(to)
	k.drop(now)
	if !m.post(to, k, now, immediately) {
		if c := k.command(now); c != nil {
			k.answered(c, now, now, store.ErrNotExecuted)
		}
	}
	return true
}
