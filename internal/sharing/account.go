package sharing

import "github.com/penstock-go/penstock/cluster/store"

// account is what the member has admitted, bucket by bucket and in their order, for as long as it
// counts.
type account []admitted

type admitted struct {
	bucket  int64
	at      int64 // when, by the member's clock: the latest of these units
	counted int64 // units that the store has counted
	own     int64 // units that the store has yet to be told of
	told    int64 // units that the command under way reports
	shown   int64 // units of all these that windows of other shapes know of, see Window.succeed
}

func (e admitted) units() int64 { return e.counted + e.own + e.told }

// of returns the entry of a bucket, made if there is none.
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

// join counts what another entry does.
func (e *admitted) join(f admitted) {
	e.at = max(e.at, f.at)
	e.counted += f.counted
	e.own += f.own
	e.told += f.told
	e.shown += f.shown
}

// forget drops the buckets up to last.
func (a *account) forget(last int64) {
	n := 0
	for n < len(*a) && (*a)[n].bucket <= last {
		n++
	}
	*a = append((*a)[:0], (*a)[n:]...)
}

// anew marks everything as yet to be told: the store has forgotten all.
func (a account) anew() {
	for i := range a {
		a[i].own += a[i].counted + a[i].told
		a[i].counted, a[i].told = 0, 0
	}
}

// show notes that windows of other shapes know of all this.
func (a account) show() {
	for i := range a {
		a[i].shown = a[i].units()
	}
}

// owes reports whether there is something to tell of what was admitted since then.
func (a account) owes(since int64) bool {
	for i := range a {
		if a[i].own > 0 && a[i].at > since {
			return true
		}
	}
	return false
}

// tell returns what the store has yet to be told, and notes that it is under way.
func (a account) tell() (charges []store.Units) {
	for i := range a {
		if a[i].own > 0 {
			charges = append(charges, store.Units{Bucket: a[i].bucket, Units: a[i].own})
			a[i].told += a[i].own
			a[i].own = 0
		}
	}
	return charges
}

// uncharge takes n units back that the store has yet to be told of, from the latest bucket that has so many.
func (a account) uncharge(n int64) {
	for i := len(a) - 1; i >= 0; i-- {
		if e := &a[i]; e.own >= n {
			e.own -= n
			return
		}
	}
}

// heard notes whether the store got it.
func (a account) heard(ok bool) {
	for i := range a {
		if ok {
			a[i].counted += a[i].told
		} else {
			a[i].own += a[i].told
		}
		a[i].told = 0
	}
}
