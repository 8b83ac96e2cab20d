package cluster

// SetWall gives the member a wall clock that a test moves.
func (m *Member) SetWall(wall func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = wall
	m.wallAhead = wall() - m.clock.Now()
}
