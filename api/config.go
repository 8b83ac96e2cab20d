package api

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// Config describes a Guard. The zero value is right for production: the standard chain of slots,
// the machine's clock, slog.Default().
type Config struct {
	// Clock tells the time; nil is the machine's monotonic clock. Tests use a [ManualClock]. Very
	// dense traffic may want a [clocks.Coarse].
	Clock clocks.Clock
	// Interval and Buckets are the length of every node's second window, and its number of buckets
	// (Sentinel's sampleCount). 0 means one second, and 2. The tree shows these windows; rules have
	// their own intervals.
	Interval time.Duration
	Buckets  int
	// OccupyTimeout bounds the wait of a prioritized call for a borrowed bucket, which must be
	// shorter. 0 means 500 ms; at most 24 h.
	OccupyTimeout time.Duration
	// ColdFactor divides the threshold of a cold resource, unless the warm-up rule sets its own. 0
	// means 3; otherwise it must be from 2 to 1000.
	ColdFactor int
	// Caps bound the nodes of the tree, and so its memory.
	Caps Caps
	// LeakAfter turns on leak detection: a call that has not exited this long after its admission
	// (or up to an eighth longer) is reported to the Logger, once, with the stack of its caller; see
	// [Guard.Leaks]. It costs about a microsecond per call. From 1 ms to 24 h; 0 is off and costs
	// nothing.
	LeakAfter time.Duration
	// Percentiles makes a Guard record the response times of each resource, and show the median and
	// the 95th and 99th percentile of the last minute wherever response times are shown. It costs a
	// call about two nanoseconds, and a resource some 7 KiB; at most 48 KiB, plus 5 KiB for each
	// lane.
	Percentiles bool
	// Logger gets the block log, changes of breakers, leaks, reloads, warnings of rules and
	// internal failures; nil is slog.Default().
	Logger *slog.Logger
	// Failure decides which errors of guarded code are failures (see [Admitted.Fail]), unless
	// [Guard.FailWhen] decides that for their resource. nil means every error but [context.Canceled]
	// and errors of calls whose own context was cancelled, which are neutral; a function decides
	// about these, too. It is not asked about refusals and errors marked by [Ignore], which are
	// never failures, or about panics, which always are. It must be safe for concurrent use.
	Failure func(error) bool
	// Limits sets the limits of the values of hotspot rules with LimitsFromCode, such as a user's, from a
	// database. It gets the ID of the rule and the value, and returns the limit, in the rule's units, and
	// for how long it holds (from 100 ms to 24 h); then it is asked again. It is called
	// in the background, at most once at a time for a value and sixteen times in all, when a
	// value's call arrives and its limit isn't known or no longer holds. No call waits for it: the last
	// answer holds until the next, and before the first one, the value's plan or the rule's threshold.
	// After an error the next question waits for a second, then for twice as long each time, up to a
	// minute. The context ends after ten seconds, and when the Guard is closed. It must be safe for
	// concurrent use.
	Limits func(ctx context.Context, rule string, key argument.Value) (limit float64, ttl time.Duration, err error)
	// QuotaLog is the path of a file that keeps the use of quotas (rules with per) over restarts; "" keeps
	// none. A crash frees no units, but may charge some that were not used; see docs/rules/quotas.md.
	// Each Guard needs a file of its own, in a folder that it may write; New fails if another uses it. Close writes the
	// exact uses: call it after the last call, as quotas refuse calls from then on.
	QuotaLog string
	// Chain is the order of the slots; nil is slots.Default().
	Chain *slots.Chain
	// Cluster configures this process as a member of a cluster, for rules whose limits the members
	// share: the store, a namespace, the number of members. The zero value has none. Its Clock and
	// Logger default to those of the Guard. A Guard joins while such rules are in force; a rule file
	// may configure the cluster instead; see rules.Cluster.
	Cluster cluster.Config
	// Stores open the stores that rule files name, each by the scheme of the URL: package
	// cluster/redis has such functions. They must be safe for concurrent use.
	Stores map[string]func(url string) (store.Store, error)
	// AllowWritable makes a Guard read rule files and directories that every user of the system can
	// write, with a warning: for file systems without meaningful modes.
	AllowWritable bool
	// Host provides the load, the CPU use and the memory use to rules; nil means this machine; see
	// [host.Local].
	Host host.Source
}

// Config returns the configuration: Clock, Interval, Buckets, OccupyTimeout, ColdFactor and Chain
// with their defaults filled in, and the other fields unchanged.
func (g *Guard) Config() Config { return g.config }

// engine creates the engine of the configuration.
func (c Config) engine() (*engine.Engine, error) {
	chain := c.Chain
	if chain == nil {
		chain = slots.Default()
	}
	if c.Percentiles {
		if !slices.Contains(chain.Names(), "statistic") {
			return nil, errors.New("penstock: Config.Percentiles needs the slot statistic, which Config.Chain doesn't have: add the slot or remove Percentiles")
		}
		chain = chain.Replace(slots.Percentiles())
	}
	return engine.NewEngine(engine.Config{
		Clock: c.Clock, Interval: c.Interval, Buckets: c.Buckets, OccupyTimeout: c.OccupyTimeout, ColdFactor: c.ColdFactor,
		Caps: c.Caps, LeakAfter: c.LeakAfter, Logger: c.Logger, Failure: c.Failure, Chain: (*engine.Chain)(chain), Host: c.Host,
		Limits: c.Limits, QuotaLog: c.QuotaLog,
	})
}

// withDefaultsOf returns the configuration with the engine's defaults.
func (c Config) withDefaultsOf(e engine.Config) Config {
	c.Clock, c.Interval, c.Buckets, c.OccupyTimeout, c.ColdFactor = e.Clock, e.Interval, e.Buckets, e.OccupyTimeout, e.ColdFactor
	c.Chain = (*slots.Chain)(e.Chain)
	return c
}
