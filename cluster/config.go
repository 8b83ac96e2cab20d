package cluster

import (
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
)

// Config says how a Guard takes part in a cluster, see api.Config.Cluster. A rule file may name the store
// instead.
type Config struct {
	Store store.Store
	// Clock is the time of the limits; nil is the Guard's.
	Clock clocks.Clock
	// Namespace separates limits: members of different namespaces share none. "" is a namespace
	// too.
	Namespace string
	// Members is the expected number of members; 0 if unknown. This number, or the highest seen in
	// ten minutes if that is more, is used while the store is away and for rules per member.
	Members int
	// Timeout is how long the store has for an answer at least; 0 means as long as the most patient rule says.
	Timeout time.Duration
	// ValueCalls is how many calls a second may make this member ask the store about single values of
	// hotspot rules. Calls beyond that are treated as their rules say for when the store is away. 0
	// means DefaultValueCalls.
	ValueCalls int
	// Secret is what values of hotspot rules are hashed with. All members must have the same.
	Secret string
	// Logger gets one message when the store goes away and one when it is back; nil is the
	// Guard's.
	Logger *slog.Logger
	// Seed makes the member's random choices repeatable; 0 means a random seed.
	Seed uint64
}

// DefaultValueCalls is the default of Config.ValueCalls.
const DefaultValueCalls = 1000
