package main

import (
	"slices"

	"github.com/penstock-go/penstock/authority"
)

// keeperOf is what keepers have in common: nothing happens unless they say so.
type keeperOf struct {
	ruleID
	about func(resource string) bool
}

func (k *keeperOf) is() ruleID                       { return k.ruleID }
func (k *keeperOf) concerns(_ *ledger, c *call) bool { return k.about(c.resource) }
func (k *keeperOf) over(*ledger, *call) string       { return "" }
func (k *keeperOf) took(*ledger, *call)              {}
func (k *keeperOf) ran(*ledger, *call)               {}
func (k *keeperOf) left(*ledger, *call)              {}
func (k *keeperOf) follow(*ledger, keeper)           {}

// listKeeper is for an authority rule.
type listKeeper struct {
	keeperOf
	rule authority.Rule
}

func (k *listKeeper) judge(_ *ledger, c *call) opinion {
	in := c.origin != "" && slices.Contains(k.rule.Origins, c.origin) == (k.rule.List == authority.Allow)
	if c.origin == "" {
		in = k.rule.List == authority.Deny || k.rule.AllowAnonymous
	}
	if in {
		return pass
	}
	return refuse
}

// looseKeeper is for a rule of which the ledger knows little: within its range it may say
// either.
type looseKeeper struct {
	keeperOf
	inbound bool // it is about calls from outside only
	says    opinion
}

func (k *looseKeeper) concerns(_ *ledger, c *call) bool {
	return k.about(c.resource) && (c.inbound || !k.inbound)
}
func (k *looseKeeper) judge(*ledger, *call) opinion { return k.says }

// limit is what windows and semaphores are kept for: where a rule counts a call, and how much
// may be there.
type limit struct {
	keeperOf
	// where is the node on which the rule counts the call, false if it isn't about it.
	where func(l *ledger, c *call) (place, bool)
	// role is the kind of node: calls that count on one of these count for the rule.
	role      func(c *call) (place, bool)
	low, high int64
	looks     bool // it takes nothing
	varies    bool // its window is made for the first call that it is about
	same      any  // two rules with the same are about the same calls
}

func (k *limit) concerns(l *ledger, c *call) bool {
	_, ok := k.where(l, c)
	return ok
}
