package inspect

import (
	"sync"

	"github.com/penstock-go/penstock/core"
)

// snapshots takes snapshots for many readers, one at a time. Readers that come
// while one is being taken share the next. So however hard it is hammered, one
// goroutine reads the nodes, and yet nobody gets a copy older than his question.
type snapshots struct {
	engine *core.Engine
	taking sync.Mutex

	mu   sync.Mutex
	next func() Tree // what readers wait for that come now; nil if there are none
}

func (s *snapshots) take() Tree { return s.join()() }

func (s *snapshots) join() func() Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = sync.OnceValue(func() Tree {
			s.taking.Lock()
			defer s.taking.Unlock()
			s.close() // before the clock is read: who comes later wants a later one
			return Snapshot(s.engine)
		})
	}
	return s.next
}

// close sends readers that come from now on to another snapshot.
func (s *snapshots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
}
