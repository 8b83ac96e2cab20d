package sharing

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/cluster/store"
)

var errForgets = errors.New("the store forgets the key between one command and the next: is it evicting keys?")

// broken is what a limit knows of a key that holds something else, see [store.ErrForeign], that is on its way,
// see [store.ErrMoving], or that is never there: it does without the store, and asks it only now and then. The
// zero value is that of a key that is well. It needs the mutex of the limit.
type broken struct {
	on      bool
	by      string // what the store said
	retryAt int64
}

// note takes note of the error of a command, and reports whether the key was well before.
func (b *broken) note(err error, now int64) (broke bool) {
	if !is(err, store.ErrForeign) && !is(err, store.ErrMoving) && !is(err, errForgets) {
		return false
	}
	broke = !b.on
	*b = broken{on: true, by: fmt.Sprint(err), retryAt: now + probeEvery}
	return broke
}

// why is the error for which the store is done without, empty if it isn't.
func (b *broken) why(s *shard) string {
	if b.on {
		return b.by
	}
	return s.why()
}

// logBroken logs that a key has broken. The caller holds no lock: the log's handler may be under the
// limit that this is about.
func (m *Member) logBroken(key string, err error) {
	m.cfg.Logger.Error("penstock: a cluster rule can't use its key: it does as its onFailure says", "key", key, "error", err)
}
