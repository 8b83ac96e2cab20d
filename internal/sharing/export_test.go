package sharing

// SetWall gives the member a wall clock that a test moves.
func (m *Member) SetWall(wall func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = wall
	m.wallAhead = wall() - m.clock.Now()
}

// Late returns the number of undecided calls; see [Late].
func (m *Member) Late() int64 { return m.late.Load() }

const MostLate = mostLate

// Planned returns the number of planned tasks.
func (m *Member) Planned() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.agenda.tasks)
}
