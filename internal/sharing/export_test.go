package sharing

// SetWall gives the member a wall clock that a test moves.
func (m *Member) SetWall(wall func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = wall
	m.wallAhead = wall() - m.clock.Now()
}

// Late is how many calls have yet to be decided, see [Late].
func (m *Member) Late() int64 { return m.late.Load() }

// MostLate is mostLate.
const MostLate = mostLate

// Planned is how many tasks the member has planned.
func (m *Member) Planned() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.agenda.tasks)
}
