package sharing

import (
	"maps"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/shared"
)

// account records the units that the member has admitted, a bucket at a time in order, while they
// count.
type account []admitted

// admitted counts the units of one bucket. Each unit is counted, uncharged or charging.
type admitted struct {
	bucket    int64
	at        int64 // latest admission, by the member's clock
	counted   int64 // the store counts these
	uncharged int64 // not yet charged to the store
	charging  int64 // charged by the command in flight
	// passedOn is the number of units that the accounts of windows of other shapes have, too: see
	// Window.succeed. Nil until a rule changes its shape. It keeps no window alive.
	passedOn map[shared.Weak[Window]]int64
}

func (e admitted) units() int64 { return e.counted + e.uncharged + e.charging }

// of returns the entry of a bucket, and creates it if there is none.
func (a *account) of(bucket int64) *admitted {
	i := len(*a)
	for i > 0 && (*a)[i-1].bucket > bucket {
		i--
	}
	if i > 0 && (*a)[i-1].bucket == bucket {
		return &(*a)[i-1]
	}
	*a = append(*a, admitted{})
	copy((*a)[i+1:], (*a)[i:])
	(*a)[i] = admitted{bucket: bucket}
	return &(*a)[i]
}

// join adds the units of another entry.
func (e *admitted) join(f admitted) {
	e.at = max(e.at, f.at)
	e.counted += f.counted
	e.uncharged += f.uncharged
	e.charging += f.charging
	for w, n := range f.passedOn {
		e.passOn(w, e.passedOn[w]+n)
	}
}

// forget drops the buckets up to last.
func (a *account) forget(last int64) {
	n := 0
	for n < len(*a) && (*a)[n].bucket <= last {
		n++
	}
	*a = append((*a)[:0], (*a)[n:]...)
}

// unchargeAll marks all units as uncharged, because the store has forgotten them.
func (a account) unchargeAll() {
	for i := range a {
		a[i].uncharged += a[i].counted + a[i].charging
		a[i].counted, a[i].charging = 0, 0
	}
}

// passOn records that the account of another window has n of the units.
func (e *admitted) passOn(w shared.Weak[Window], n int64) {
	if e.passedOn == nil {
		e.passedOn = make(map[shared.Weak[Window]]int64)
	}
	e.passedOn[w] = n
}

// passOn records that the account of another window has all units.
func (a account) passOn(w *Window) {
	for i := range a {
		a[i].passOn(shared.MakeWeak(w), a[i].units())
	}
}

// passTo returns the units that another window's account needs, and records that it has all.
func (a account) passTo(w *Window) (missing account) {
	for i := range a {
		e := &a[i]
		known := e.passedOn[shared.MakeWeak(w)]
		if n := e.units() - known; n > 0 {
			m := admitted{bucket: e.bucket, uncharged: n}
			if known == 0 { // otherwise nobody knows which of them other windows have
				m.passedOn = maps.Clone(e.passedOn)
			}
			missing = append(missing, m)
		}
	}
	a.passOn(w)
	return missing
}

// owes reports whether units admitted at or after since are uncharged.
func (a account) owes(since int64) bool {
	for i := range a {
		if a[i].uncharged > 0 && a[i].at > since {
			return true
		}
	}
	return false
}

// charge moves the uncharged units into a command, and returns them.
func (a account) charge() (charges []store.Units) {
	for i := range a {
		if a[i].uncharged > 0 {
			charges = append(charges, store.Units{Bucket: a[i].bucket, Units: a[i].uncharged})
			a[i].charging += a[i].uncharged
			a[i].uncharged = 0
		}
	}
	return charges
}

// uncharge removes units from their bucket, at most its uncharged ones: none go from another bucket,
// which may count for longer.
func (a account) uncharge(u store.Units) {
	for i := range a {
		if e := &a[i]; e.bucket == u.Bucket {
			e.uncharged -= min(u.Units, e.uncharged)
		}
	}
}

// charged records the end of a command that charged units; ok means that the store counted them.
func (a account) charged(ok bool) {
	for i := range a {
		if ok {
			a[i].counted += a[i].charging
		} else {
			a[i].uncharged += a[i].charging
		}
		a[i].charging = 0
	}
}
