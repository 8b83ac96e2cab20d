package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/quotalog"
	"github.com/penstock-go/penstock/internal/shared"
)

// account counts the units that a rule with a quota has given in the current period, with a lock of
// its own. Like a
// bucket it survives changes of the rule: units that were used stay used, until the next period
// begins in the calendar of the latest rule. A call that is still decided by the old rule takes from
// the same account, under the old limit. Safe for concurrent use.
type account struct {
	mu       shared.Mutex
	meter    calendar.Meter
	calendar *calendar.Calendar
}

// follow makes the account go on in another calendar, and keep its use in an entry of a log, nil for
// none.
func (a *account) follow(c *calendar.Calendar, e *quotalog.Entry, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meter.Leave(now)
	if e != a.meter.Entry() {
		a.meter.Keep(e, now)
	}
	a.calendar = c
	a.meter.Follow(c, now)
}

func (a *account) take(now, n, limit int64) (period int64, ok bool) {
	a.mu.Lock()
	period, ok = a.meter.Take(a.calendar, now, n, limit)
	a.mu.Unlock()
	return period, ok
}

// look returns a copy of the meter, and its calendar.
func (a *account) look() (calendar.Meter, *calendar.Calendar) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.meter, a.calendar
}

// GiveBack returns the units of a call that is refused by a later rule or gives up.
func (a *account) GiveBack(r *engine.Reservation, now int64) { a.Refund(r, r.Units, now) }

// Refund returns the units that a call didn't use, to the period in which it entered.
func (a *account) Refund(r *engine.Reservation, n, _ int64) {
	a.mu.Lock()
	a.meter.GiveBack(r.Token, n)
	a.mu.Unlock()
}

// Charge counts units that a call used beyond its reservation, in the period in which it entered: as
// many as may then be used, which the reservation's Undo says.
func (a *account) Charge(r *engine.Reservation, n, _ int64) (forgiven int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.meter.Charge(r.Token, n, r.Undo)
}

func (a *account) retryAfter(now, n, limit int64) (wait time.Duration, known bool) {
	m, c := a.look()
	return m.RetryAfter(c, now, n, limit)
}

func (a *account) idle(now int64) bool {
	m, _ := a.look()
	return m.Idle(now)
}
