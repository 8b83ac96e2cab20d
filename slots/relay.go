package slots

import "github.com/penstock-go/penstock/core"

// relayed is the rules that a slot S calls, nil unless the slot in the chain is one.
func relayed[S core.Checker, R core.Decider](of core.Checker, rules any) core.Decider {
	if _, plain := of.(S); !plain {
		return nil
	}
	if r, ok := rules.(R); ok {
		return r
	}
	return nil
}
