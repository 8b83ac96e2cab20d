package sharing

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/cluster/store"
)

var errForgets = errors.New("the store loses the key between commands: is it evicting keys?")

// broken records that a key is unusable: it holds a foreign value ([store.ErrForeign]), is being
// moved ([store.ErrMoving]), or is missing at each command. The limit then decides without the
// store, and only probes it now and then. The zero value is a usable key. The limit's mutex guards
// it.
type broken struct {
	on      bool
	by      string // the store's error
	retryAt int64
}

// note records the error of a command, and reports whether the key was usable until now.
func (b *broken) note(err error, now int64) (broke bool) {
	if !is(err, store.ErrForeign) && !is(err, store.ErrMoving) && !is(err, errForgets) {
		return false
	}
	broke = !b.on
	*b = broken{on: true, by: fmt.Sprint(err), retryAt: now + probeEvery}
	return broke
}

// why returns the reason for deciding without the store; empty while the store is in use.
func (b *broken) why(s *shard) string {
	if b.on {
		return b.by
	}
	return s.why()
}

// logBroken logs that a key has become unusable. The caller holds no lock: the log handler may be
// subject to the same limit.
func (m *Member) logBroken(key string, err error) {
	m.cfg.Logger.Error("penstock: key of a cluster rule is unusable: rule falls back to onFailure", "key", key, "error", err)
}
