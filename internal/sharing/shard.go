package sharing

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// shard is a part of the store that answers, or doesn't, as a whole: whether it is unreachable, and what
// to send there.
//
// A store is unreachable after mostFailures in a row; being slow counts as failing. From then on no call
// asks it or waits for it. Every now and then, at a random moment, one command is let through, and
// when it is answered the store is back.
type shard struct {
	number      int
	unreachable atomic.Bool
	trouble     atomic.Pointer[string] // the latest error
	probeAt     atomic.Int64           // from when on a command is let through while it is unreachable

	// Under Member.mu:
	due      []keyed
	dueBy    int64 // when the first of these must be sent at the latest, or immediately
	inFlight int   // batches that are not finished
	failures int
	within   int // calls of Store.Do that have not returned
	probing  bool
	clock    storeClock
}

const (
	mostFailures = 5
	mostInBatch  = 64
	mostWithin   = 64 // calls of Store.Do: an unreachable store may never return
	probeEvery   = int64(time.Second)
	immediately  = int64(0) // calls wait for it
	never        = int64(1<<63 - 1)
)

// keyed makes the commands of one key, one at a time.
type keyed interface {
	where() *place
	// drop gives up what is leased: it is no longer known until when that is good.
	drop(now int64)
	// command is the one to send now, nil if there is none.
	command(now int64) store.Command
	// answered reports what became of the command. With an error there is no reply, and no part of
	// the command that a store writes may be read.
	answered(c store.Command, sent, received int64, err error)
}

// abandon has the shard unreachable from now on.
func (s *shard) abandon() {
	s.unreachable.Store(true)
	s.probeAt.Store(never)
}

// post notes that a key has something to send, for the first flush at that time or later, or for an
// earlier one that sends others. It returns false if the store is unreachable and must not be asked.
func (m *Member) post(s *shard, k keyed, now, by int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.unreachable.Load() {
		if s.probing || now < s.probeAt.Load() || s.within >= mostWithin {
			return false
		}
		s.probing = true
	}
	if len(s.due) == 0 || by < s.dueBy {
		s.dueBy = by
	}
	s.due = append(s.due, k)
	return true
}

// hasten has what was posted sent by that time, and reports whether the caller should flush: the
// time is earlier than before, or what was posted is overdue, since alarms may be late.
func (m *Member) hasten(s *shard, now, by int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.due) == 0 || s.dueBy <= by && now < s.dueBy {
		return false
	}
	s.dueBy = min(s.dueBy, by)
	return true
}

// unlessAwaited returns when a command is due: by that time, but immediately if calls wait for it.
func unlessAwaited(waiters []*waiter, by int64) int64 {
	if len(waiters) > 0 {
		return immediately
	}
	return by
}

// flush sends what was posted, in batches. Commands that no call waits for are held back until one
// of them is due, and while another batch of their shard is on its way; an alarm sends them then, or
// finish. A full batch is sent at once. So a member with many keys makes few round trips, of many
// commands each. If all is set, nothing is held back. The caller holds no lock.
func (m *Member) flush(all bool) {
	var moved map[keyed]bool // a key moves once: a store may say something else each time
	for {
		now := m.now()
		s, keys := m.takeDue(now, all)
		if s == nil {
			return
		}
		b := &batch{member: m, shard: s, commands: make([]store.Command, 0, len(keys)), keys: keys[:0]}
		for _, k := range keys {
			if !moved[k] && m.follow(k, s, now) {
				if moved == nil {
					moved = map[keyed]bool{}
				}
				moved[k] = true
			} else if c := k.command(now); c != nil {
				b.commands = append(b.commands, c)
				b.keys = append(b.keys, k)
			}
		}
		if len(b.commands) == 0 {
			m.mu.Lock()
			s.probing = false
			s.inFlight--
			m.mu.Unlock()
			continue
		}
		b.send()
	}
}

// takeDue removes keys of one shard from those that are due, for a batch.
func (m *Member) takeDue(now int64, all bool) (*shard, []keyed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shards {
		most := mostInBatch
		if s.number == nowhere {
			most = 1
		}
		n := min(len(s.due), most)
		wait := n < most && s.dueBy != immediately && !all
		switch {
		case n == 0, wait && s.inFlight > 0:
			continue
		case wait && now < s.dueBy && len(m.limits) > 1: // a member's only limit has no other to wait for
			if m.sending.index == 0 || s.dueBy < m.sending.at {
				m.putLocked(&m.sending, s.dueBy)
			}
			continue
		}
		keys := slices.Clone(s.due[:n])
		s.due = slices.Delete(s.due, 0, n)
		s.inFlight++
		return s, keys
	}
	return nil, nil
}

// judge notes whether the store has answered, and if not, why.
func (m *Member) judge(s *shard, good bool, now int64, why error) {
	if !good {
		trouble := fmt.Sprint(why) // Sprint survives an error that panics
		s.trouble.Store(&trouble)
	}
	m.mu.Lock()
	if m.gone { // it stays unreachable
		m.mu.Unlock()
		return
	}
	s.probing = false
	turned := false
	switch unreachable := s.unreachable.Load(); {
	case good:
		s.failures = 0
		turned = unreachable
	case !unreachable:
		s.failures++
		turned = s.failures == mostFailures
	}
	if !good {
		s.probeAt.Store(now + probeEvery/2 + m.random.Int64N(probeEvery/2))
	}
	if turned {
		s.unreachable.Store(!good)
	}
	m.mu.Unlock()
	switch {
	case turned && good:
		m.cfg.Logger.Info("penstock: the store of cluster rules is back", "shard", s.number)
		m.probe()
	case turned:
		m.cfg.Logger.Warn("penstock: the store of cluster rules is away: they do as their onFailure says", "shard", s.number,
			"error", why, "timeout", m.patience())
	}
}

// why is the latest error while the store is unreachable, else empty.
func (s *shard) why() string {
	if trouble := s.trouble.Load(); trouble != nil && s.unreachable.Load() {
		return *trouble
	}
	return ""
}
