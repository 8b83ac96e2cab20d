package sharing

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// shard is a part of the store that answers or fails as a whole. It records whether that part is
// unreachable, and holds the keys with commands for it.
//
// A store is unreachable after mostFailures failures in a row; a slow answer is a failure. From
// then on no call asks it or waits for it. Now and then, at a random moment, one command is let
// through; once it is answered, the store is back.
type shard struct {
	number      int
	unreachable atomic.Bool
	trouble     atomic.Pointer[string] // the latest error
	probeAt     atomic.Int64           // while unreachable, when the next command is let through

	// Guarded by Member.mu:
	due      []keyed
	dueBy    int64 // latest time to send the first of these, or immediately
	inFlight int   // unfinished batches
	failures int
	since    int64 // time of the first of these failures
	within   int   // running calls of Store.Do
	probing  bool
	clock    storeClock
}

const (
	mostFailures = 5
	mostInBatch  = 64
	mostWithin   = 64 // running calls of Store.Do: an unreachable store may never return
	probeEvery   = int64(time.Second)
	immediately  = int64(0) // a call waits
	never        = int64(1<<63 - 1)
)

// keyed makes the commands of one key, one at a time.
type keyed interface {
	where() *place
	// drop gives up the leases: their ends are no longer known.
	drop(now int64)
	// command returns the command to send now, nil if there is none.
	command(now int64) store.Command
	// answered delivers the outcome of a command. With an error there is no reply, and no field
	// that the store writes may be read.
	answered(c store.Command, sent, received int64, err error)
}

// abandon makes the shard unreachable from now on.
func (s *shard) abandon() {
	s.unreachable.Store(true)
	s.probeAt.Store(never)
}

// post registers a key that has something to send, for the first flush at or after by, or an
// earlier one that sends others. It returns false if the store is unreachable and must not be
// asked.
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

// hasten makes posted commands due by that time. It reports whether the caller should flush: the
// time is earlier than before, or a command is overdue, since alarms may be late.
func (m *Member) hasten(s *shard, now, by int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.due) == 0 || s.dueBy <= by && now < s.dueBy {
		return false
	}
	s.dueBy = min(s.dueBy, by)
	return true
}

// unlessAwaited returns when a command is due: immediately if calls wait for it, otherwise at by.
func unlessAwaited(waiters []*waiter, by int64) int64 {
	if len(waiters) > 0 {
		return immediately
	}
	return by
}

// flush sends the posted commands in batches. Commands that no call waits for are held back until
// one of them is due, and while another batch of their shard is in flight; an alarm or finish sends
// them then. A full batch goes out at once. So a member with many keys makes few round trips of
// many commands each. With all set, nothing is held back. The caller holds no lock.
func (m *Member) flush(all bool) {
	var moved map[keyed]bool // a key moves once: a store may name another shard each time
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

// takeDue removes the due keys of one shard, for a batch.
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
		case wait && now < s.dueBy && len(m.limits) > 1: // with one limit there is none to wait for
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

// judge records whether the store has answered, and if not, why.
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
		if s.failures == 0 {
			s.since = now
		}
		s.failures++
		turned = s.failures == mostFailures
	}
	since, wallAhead := s.since, m.wallAhead
	if !good {
		s.probeAt.Store(now + probeEvery/2 + m.random.Int64N(probeEvery/2))
	}
	if turned {
		s.unreachable.Store(!good)
	}
	m.mu.Unlock()
	switch {
	case turned && good:
		m.cfg.Logger.Info("penstock: store of cluster rules reachable again", "shard", s.number,
			"unreachableFor", time.Duration(now-since).Round(time.Millisecond))
		m.probe()
	case turned:
		m.cfg.Logger.Warn("penstock: store of cluster rules unreachable: rules fall back to onFailure", "shard", s.number,
			"since", time.Unix(0, since+wallAhead).UTC(), "error", why, "timeout", m.patience())
	}
}

// why returns the latest error while the store is unreachable; otherwise "".
func (s *shard) why() string {
	if trouble := s.trouble.Load(); trouble != nil && s.unreachable.Load() {
		return *trouble
	}
	return ""
}
