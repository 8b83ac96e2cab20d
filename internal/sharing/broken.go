package sharing

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/cluster/store"
)

var errForgets = errors.New("the store forgets the key between one command and the next: is it evicting keys?")

// broken records that a key is unusable: it holds something else, see [store.ErrForeign], is being moved, see
// [store.ErrMoving], or is gone at each command. The limit then decides without the store, and asks it only
// now and then. The zero value stands for a usable key. The mutex of the limit guards it.
type broken struct {
	on      bool
	by      string // what the store said
	retryAt int64
}

// note records the error of a command, and reports whether the key was usable before.
func (b *broken) note(err error, now int64) (broke bool) {
	if !is(err, store.ErrForeign) && !is(err, store.ErrMoving) && !is(err, errForgets) {
		return false
	}
	broke = !b.on
	*b = broken{on: true, by: fmt.Sprint(err), retryAt: now + probeEvery}
	return broke
}

// why returns the error for which the limit decides without the store, empty if it asks the store.
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
