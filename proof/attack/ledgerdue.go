package main

// due is between which times the call's turns lie.
func (l *ledger) due(c *call) (least, most float64) {
	most = c.due
	for _, k := range l.keepers {
		for q := range turnsOf(k) {
			if t := q.of(c); t != nil {
				least, most = max(least, t.least), max(most, q.latestOf(*t))
			}
		}
	}
	return least, most
}

// latestOf is when a turn comes at the latest, 0 if that is known by the call's opinion only.
func (q *turnLog) latestOf(t turn) float64 {
	if q.bounded {
		return 0
	}
	return t.most
}

// of returns the turn of a call that waits, or nil.
func (q *turnLog) of(c *call) *turn {
	for i := range q.waiting {
		if q.waiting[i].call == c {
			return &q.waiting[i]
		}
	}
	return nil
}
