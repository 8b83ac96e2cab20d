package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// parted returns a slot in the form that the engine uses. The library's slots have that form. A
// custom slot is split into one part for each role that it plays, so that only custom slots pay for
// a [Call].
func parted(s Slot) engine.Slot {
	switch s.(type) {
	case engine.FamilySlot, nodeSelector, clusterBuilder, blockLog, statistic, percentiles:
		return s
	}
	p := &engine.Parts{Slot: s}
	if r, ok := s.(Preparer); ok {
		p.Preparer = preparer{s, r}
	}
	if r, ok := s.(Checker); ok {
		c := checker{r, false}
		if d, ok := s.(interface{ Direct() bool }); ok {
			c.direct = d.Direct()
		}
		p.Checker = c
		if x, ok := s.(Explainer); ok {
			p.Checker = explainer{c, x}
		}
	}
	if r, ok := s.(Rechecker); ok {
		p.Rechecker = rechecker{r}
	}
	if r, ok := s.(PassRecorder); ok {
		p.Passed = passRecorder{s, r}
	}
	if r, ok := s.(BlockRecorder); ok {
		p.Blocked = blockRecorder{s, r}
	}
	if r, ok := s.(CompleteRecorder); ok {
		p.Completed = completeRecorder{s, r}
	}
	return p
}

// The parts of a slot. Parts other than checkers keep the slot for its name.
type (
	preparer struct {
		Slot
		r Preparer
	}
	checker struct {
		r      Checker
		direct bool
	}
	explainer struct {
		checker
		x Explainer
	}
	rechecker    struct{ r Rechecker }
	passRecorder struct {
		Slot
		r PassRecorder
	}
	blockRecorder struct {
		Slot
		r BlockRecorder
	}
	completeRecorder struct {
		Slot
		r CompleteRecorder
	}
)

func (p preparer) Prepare(inv *engine.Invocation) { p.r.Prepare(Call{inv}) }

func (p checker) Ask(inv *engine.Invocation) engine.Verdict  { return p.r.Ask(Call{inv}).verdict() }
func (p checker) Take(inv *engine.Invocation) engine.Verdict { return p.r.Take(Call{inv}).verdict() }
func (p checker) Direct() bool                               { return p.direct }

func (p explainer) Explain(inv *engine.Invocation) []core.Judgement { return p.x.Explain(Call{inv}) }

func (p rechecker) Recheck(inv *engine.Invocation) engine.Verdict {
	return p.r.Recheck(Call{inv}).verdict()
}

func (p passRecorder) Passed(inv *engine.Invocation) { p.r.Passed(Call{inv}) }

func (p blockRecorder) Blocked(inv *engine.Invocation, b *core.BlockError) {
	p.r.Blocked(Call{inv}, b)
}

func (p completeRecorder) Completed(inv *engine.Invocation) { p.r.Completed(Call{inv}) }
