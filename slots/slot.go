package slots

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Slot is one link of the chain. It has a name and plays one or more of these roles: [Preparer],
// [Checker], [Rechecker], and the recorders [PassRecorder], [BlockRecorder] and [CompleteRecorder].
// Slots keep no state of a call, run on the caller's goroutine, and must be safe for concurrent
// use. A slot that panics is skipped: the call continues without it, and the log names it.
type Slot interface {
	Name() string
}

// Preparer is called first, before any slot decides: the place to count arrivals, for example.
type Preparer interface {
	Prepare(Call)
}

// Checker decides whether a call may run.
//
// Take decides. It records its grants with [Call.Hold], and a rejection by a later slot gives them
// back. Ask is an early check: it takes nothing, and a rejection here avoids taking units from
// other slots. It may return the wait of the call; a call that can't wait that long is then
// rejected. No Checker may rely on Ask: the chain may call Take without it.
//
// A Checker may have an optional method:
//
//	Direct() bool // Take never makes a call wait, and needs no Ask before it
type Checker interface {
	Ask(Call) Verdict
	Take(Call) Verdict
}

// AskOnly makes a [Checker] from a function that takes nothing. Its verdict must not be a wait. It
// may be called twice for one call, as Ask and as Take.
type AskOnly func(Call) Verdict

// Ask calls the function.
func (f AskOnly) Ask(c Call) Verdict { return f(c) }

// Take calls the function.
func (f AskOnly) Take(c Call) Verdict { return f(c) }

// Direct returns true: the function takes nothing, so calling Ask first would save nothing.
func (f AskOnly) Direct() bool { return true }

// Rechecker is asked again after a call has waited: because its state may have changed, or because
// it counts running calls, and a waiting call doesn't run yet. It may reject the call; a wait in
// its verdict is ignored.
type Rechecker interface {
	Recheck(Call) Verdict
}

// PassRecorder records that a call was admitted, at the moment it is released. There are three
// recorder interfaces because most slots need one of the three moments, and the chain calls only
// methods that exist.
type PassRecorder interface {
	Passed(Call)
}

// BlockRecorder records that a call was rejected.
type BlockRecorder interface {
	Blocked(Call, *core.BlockError)
}

// CompleteRecorder records that an admitted call has ended.
type CompleteRecorder interface {
	Completed(Call)
}

// Explainer is a [Checker] that can explain its verdict on a call. Explain is called for a
// hypothetical call: it takes nothing, records nothing, and leaves no trace. The judgements need
// not set Rule.
type Explainer interface {
	Explain(Call) []core.Judgement
}

// Verdict is a slot's decision on a call. The zero value admits it.
type Verdict struct {
	// Block rejects the call; see [Call.Refuse].
	Block *core.BlockError
	// Wait, if above 0, admits the call after that time. By is the rejection of a call that can't
	// wait that long; nil means one that names only the resource.
	Wait time.Duration
	By   *core.BlockError
}

func (v Verdict) verdict() engine.Verdict {
	return engine.Verdict{Block: v.Block, Wait: v.Wait, By: v.By}
}
