package api

import "context"

// Meter counts what a running call uses of a unit, such as the tokens of a stream, and settles it:
//
//	defer e.ExitOn(&err)
//	m := api.NewMeter(e, "tokens")
//	defer m.Settle()
//	for chunk := range answer {
//		if err := m.Add(ctx, chunk.Tokens); err != nil {
//			return err // no room for more
//		}
//
// A Meter is for one goroutine.
type Meter struct {
	call          Admitted
	unit          string
	step          int64
	granted, used int64
	settled       bool
}

// NewMeter returns a Meter of a unit of the call, which may have reserved some of it. A call needs
// one Meter at most for each unit.
func NewMeter(e Admitted, unit string) *Meter {
	reserved := e.entry.Reserved(unit)
	return &Meter{call: e, unit: unit, step: reserved / 4, granted: reserved}
}

// Add counts n units that the call has used; a negative n corrects an earlier one. Once the
// reservation is used up, Add asks for more: the missing units, or a quarter of the reservation if that
// is more. The error is that of [Admitted.More]; the units count nevertheless, so stop, or add on
// and have Settle charge them. After Settle the error is [ErrExited].
func (m *Meter) Add(ctx context.Context, n int64) error {
	if m.settled {
		return ErrExited
	}
	const most = 1 << 53 // as in Settle
	m.used = min(max(0, m.used+min(n, most)), most)
	missing := m.used - m.granted
	if missing <= 0 {
		return nil
	}
	n = min(max(missing, m.step), 1<<40)
	err := m.call.More(ctx, m.unit, n)
	if err == nil {
		m.granted += n
	}
	return err
}

// Used returns the units counted.
func (m *Meter) Used() int64 { return m.used }

// Settle settles the units counted, as [Admitted.Settle] does. It must come before the exit; defer it
// after that. A second Settle does nothing.
func (m *Meter) Settle() {
	if !m.settled && m.used+m.granted > 0 {
		m.call.Settle(m.unit, m.used)
	}
	m.settled = true
}
