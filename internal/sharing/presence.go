package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// presence announces a member, and records how many members it has seen.
type presence struct {
	beat   *beat
	seen   [10]int64 // the highest number of members in each minute
	began  int64     // when the member announced itself
	minute int64     // of the latest entry, counted from began
}

// beat is the key of the announcements.
type beat struct {
	place
	m      *Member
	task   task
	leaves bool
}

const (
	beatEvery  = int64(time.Second)
	beatExpiry = 3 * time.Second
)

// appear starts to announce the member.
func (m *Member) appear() {
	m.members.Store(max(1, int64(m.cfg.Members)))
	b := &beat{m: m, place: place{key: m.Key("members")}}
	b.on.Store(m.find(b.key))
	b.task.do = b.post
	m.beat, m.began = b, m.clock.Now()
	m.plan(&b.task, m.began+m.chance(beatEvery/10))
}

// leave announces the member's departure.
func (m *Member) leave() {
	m.mu.Lock()
	m.beat.leaves = true
	m.mu.Unlock()
	m.post(m.beat.shard(), m.beat, m.clock.Now(), immediately)
}

func (b *beat) post(now int64) {
	b.m.mu.Lock()
	leaves := b.leaves
	b.m.mu.Unlock()
	if leaves {
		return // it has announced its departure
	}
	b.m.post(b.shard(), b, now, now)
	b.m.plan(&b.task, now+beatEvery)
	b.m.highest(now, 0)
}

func (b *beat) command(int64) store.Command {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	return &store.Presence{Outcome: store.Outcome{Key: b.key}, Caller: b.m.caller(), Expiry: beatExpiry, Leave: b.leaves}
}

func (b *beat) answered(c store.Command, _, received int64, err error) {
	if err == nil {
		b.m.highest(received, c.(*store.Presence).Reply.Members)
	}
}

// drop does nothing: a member leases no presence.
func (b *beat) drop(int64) {}

// highest records the number of members, and sets Members to the highest in ten minutes.
func (m *Member) highest(now, members int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	minute := (now - m.began) / int64(time.Minute)
	for m.minute < minute {
		m.minute = max(m.minute+1, minute-int64(len(m.seen)))
		m.seen[m.minute%int64(len(m.seen))] = 0
	}
	at := &m.seen[minute%int64(len(m.seen))]
	*at = max(*at, members)
	most := max(1, int64(m.cfg.Members))
	for _, n := range m.seen {
		most = max(most, n)
	}
	m.members.Store(most)
}
