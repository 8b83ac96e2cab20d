package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// blockLog writes the block log: at most one line per second for each rule and resource, with the
// number of rejections since the previous line and the caller and value of the first of them, and
// at most about 64 KiB of lines per second. Lines beyond that are reported as one number in a later
// second. A timer reports the end of a burst, within two seconds of the previous line.
type blockLog struct{}

// Name returns "log".
func (blockLog) Name() string { return "log" }

// Blocked counts the rejection and writes a line if one is due.
func (blockLog) Blocked(inv *engine.Invocation, b *core.BlockError) {
	if inv.NoteRefusal(b) {
		inv.Engine().LogBlocked(b, inv.Now())
	}
}
