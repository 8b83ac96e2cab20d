package cluster

import (
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
)

// Config makes a Guard a member of a cluster; see api.Config.Cluster. A rule file may name the
// store instead.
type Config struct {
	Store store.Store
	// Clock is the clock of the limits; nil means the Guard's.
	Clock clocks.Clock
	// Namespace separates limits: members of different namespaces share none. "" is a namespace
	// too.
	Namespace string
	// Members is the expected number of members; 0 means unknown. This number or, if higher, the
	// highest seen in ten minutes is used while the store is unreachable and for rules per member.
	Members int
	// Timeout is the minimum time that the store is given to reply; 0 means the longest timeout of
	// any rule.
	Timeout time.Duration
	// ValueCalls is the number of calls per second for which this member may ask the store about
	// single values of hotspot rules. Further calls follow their rules' OnFailure. 0 means
	// DefaultValueCalls.
	ValueCalls int
	// Secret is the key for hashing values of hotspot rules. All members must have the same.
	Secret string
	// Logger gets a message when the store becomes unreachable and when it is back; nil means the
	// Guard's.
	Logger *slog.Logger
	// Seed makes the member's random choices repeatable, and its number in the store, too: members of
	// one store need different seeds. 0 means a random seed.
	Seed uint64
}

// DefaultValueCalls is the default of Config.ValueCalls.
const DefaultValueCalls = 1000
