package flow

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Rule limits one resource. Resource and Threshold are enough:
//
//	flow.Rule{Resource: "GET /orders", Threshold: 100}
//
// admits 100 calls per second and rejects all others. Equal rules are one rule; a rule that differs
// from an older one with the same ID takes over its state. Setting a field that no rule of this
// metric, relation and behavior reads is an error; the zero value leaves a field unset.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced flow rule applies to. Each resource has its own limit,
	// unless the rule counts them Together.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// flow rule matches it more specifically. api.MatchRegex is a regular expression (RE2) that
	// must match the whole name, where a dot matches every character; it applies to every name that
	// it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Together gives all names that the rule matches one limit, besides the rules for single names:
	// the rule applies whether or not another is more specific, and replaces none. A call nested in
	// one that the rule has counted isn't counted again until that one exits. "*" counts inbound
	// calls; for all, use a regular expression, such as ".*". Only for patterns, without
	// Associated, WarmUp, WarmUpThrottle and origin "other".
	Together bool `yaml:"together,omitempty"`
	// Threshold is the limit: units per Interval for QPS, units in flight for Concurrency. Finite
	// and not negative; 0 blocks every call. Fractions are exact for the spacing of a throttle and
	// the rate of a token bucket; elsewhere they are rounded down: 1.5 admits one call per
	// interval.
	Threshold float64 `yaml:"threshold"`
	// Interval is the period of Threshold. 10 ms to 24 h; 0 means one second. Only with metric QPS.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Per makes the rule a quota: Threshold units in each day, week or month of a calendar, in place of
	// an Interval. A raised threshold frees room at once, refused calls don't count, and RetryAfter is
	// the time to the next period. Only with metric QPS, behavior Reject, and relations Direct and
	// Chain, without Buckets, memory, Cluster, and origin "other".
	Per spec.Per `yaml:"per,omitempty"`
	// Timezone is the name of the time zone of the calendar, as in "Europe/Berlin". Empty means UTC.
	// Needs Per.
	Timezone string `yaml:"timezone,omitempty"`
	// Starts is the start of a period: the time of a day ("06:00"), a day of the week ("monday",
	// "monday 06:00") or of the month ("15", "15 06:00"), where a month without that day uses its last
	// one. Empty means midnight, Monday and the first. Needs Per.
	Starts string `yaml:"starts,omitempty"`
	// Buckets divide Interval; the counts of a bucket expire together. 0 means 50. In a Ring 0
	// means 2 for an interval of one second, otherwise 10, and 10 if a cluster shares the limit.
	// Only with metric QPS, and behavior Reject or WarmUp.
	Buckets int `yaml:"buckets,omitempty"`
	// Metric is the quantity that Threshold limits. The zero value is QPS.
	Metric Metric `yaml:"metric,omitempty"`
	// Unit is the kind of units that the rule counts, as named by api.Cost: "tokens", say. Up to 64
	// letters, digits, '.', '_' or '-'. Empty means calls, or the units of api.Units.
	// The rule applies only to calls with a cost in this unit, unless it has an Estimate. Only with
	// relations Direct and Chain, and without WarmUp and WarmUpThrottle.
	Unit string `yaml:"unit,omitempty"`
	// Estimate is the whole number of units reserved by a call that names no cost in Unit. At most
	// Threshold; 0 means that the rule doesn't apply to such calls. Needs a Unit.
	Estimate float64 `yaml:"estimate,omitempty"`
	// MaxReserve is the maximum whole number of units that a call reserves; units used beyond them are
	// charged when it is settled. 0 means no maximum. Needs a Unit; not with Throttle.
	MaxReserve float64 `yaml:"maxReserve,omitempty"`
	// MaxOverdraft bounds what settled calls are charged beyond the limit, as a share of it: with
	// 0.25, a limit of 1,000 counts at most 1,250; the rest is forgiven. Up to 100; 0 means no
	// bound. Needs a Unit, metric QPS, and behavior Reject or TokenBucket; not with Cluster.
	MaxOverdraft float64 `yaml:"maxOverdraft,omitempty"`
	// Origin selects the callers: "default" (or empty) means all of them together, a name means that
	// caller, "other" means every caller that no rule of the resource names, each separately.
	Origin string `yaml:"origin,omitempty"`
	// Relation selects the traffic to count. The zero value is Direct.
	Relation Relation `yaml:"relation,omitempty"`
	// Ref is the resource that an Associated rule reads, or the context that a Chain rule applies
	// to. Required by both, refused by Direct.
	Ref string `yaml:"ref,omitempty"`
	// Behavior decides what happens to calls over the limit. The zero value is Reject.
	Behavior Behavior `yaml:"behavior,omitempty"`
	// WarmUpPeriod is the time a cold resource takes to reach its full threshold. 1 s to 24 h; 0
	// means 10 seconds. Only with WarmUp and WarmUpThrottle.
	WarmUpPeriod time.Duration `yaml:"warmUpPeriod,omitempty"`
	// ColdFactor divides the threshold of a cold resource. 2 to 1000; 0 means the engine's (3
	// unless configured). Only with WarmUp and WarmUpThrottle.
	ColdFactor int `yaml:"coldFactor,omitempty"`
	// MaxWait is the longest time in the queue, as estimated when a call arrives: prioritized calls
	// that arrive later can push it back; see api.Prioritized. Up to 24 h; 0 means 500 ms. Only with
	// Throttle and WarmUpThrottle.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// Share divides the turns between tenants while calls wait, so that a call waits for those of its
	// own tenant. The next turn is given when it is due: MaxWait bounds the wait itself, and the calls
	// that wait, of all tenants, fill it. A call that comes when it is filled displaces the newest call
	// of the tenant with the longest queue. The zero value serves all calls in the order in which they
	// came. Only with Throttle, and without a Unit or Cluster.
	Share spec.Share `yaml:"share,omitempty"`
	// Shed decides who waits in front. The zero value is api.ShedNone: calls are served in order. With
	// api.ShedLevels the next turn goes to the highest criticality that waits, and a full queue loses
	// calls of the lowest; see api.Criticality. Only where Share may be.
	Shed spec.Shed `yaml:"shed,omitempty"`
	// Burst is the number of units that may pass at once in addition to the unit that is due: a
	// token bucket holds Burst + 1, and gains Threshold per Interval; units beyond those wait in a
	// throttle, and are refused by a token bucket. 0 to 10⁹; 0 means that units pass one at a time. A
	// call of more units than a token bucket holds never passes. Only with behaviors TokenBucket and
	// Throttle, there without Share, Shed, MemoryThreshold and Cluster.
	Burst int `yaml:"burst,omitempty"`
	// MemoryThreshold is the threshold while memory use is at HighMemory or above. Above 0 and
	// below Threshold; 0 means that the threshold doesn't depend on memory. Only with behaviors
	// Reject and Throttle.
	MemoryThreshold float64 `yaml:"memoryThreshold,omitempty"`
	// LowMemory is the memory use up to which the full Threshold holds, and HighMemory the use from
	// which MemoryThreshold holds: both [Share]s or both [Bytes]. Between the two the threshold
	// falls linearly. Required by MemoryThreshold.
	LowMemory  Watermark `yaml:"lowMemory,omitempty"`
	HighMemory Watermark `yaml:"highMemory,omitempty"`
	// Window selects the intervals in which a QPS limit holds. The zero value is Strict: in every
	// one. In files it is strict: false for a Ring. Only with metric QPS, and behavior Reject or
	// WarmUp.
	Window Window `yaml:"strict,omitempty"`
	// Cluster makes several processes share the limit, and determines how. The zero value keeps it
	// local to this process. Needs an ID, relation Direct, and behavior Reject, Throttle or
	// TokenBucket; then Burst is at least what the bucket gains in the timeout.
	Cluster cluster.Rule `yaml:"cluster,omitempty"`
	// Notify lists up to 4 shares of the limit, as in ["80%", "100%"]. A notice goes to the log and to the
	// listeners of api.Guard.OnNotice when use reaches a share, at most once per Interval or period of
	// Per. Only with metric QPS, behavior Reject and relation Direct, without Cluster and origin "other".
	Notify []string `yaml:"notify,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The ranges of a rule's fields.
const (
	MinInterval     = stat.MinInterval
	MaxInterval     = stat.MaxInterval
	MinWarmUpPeriod = time.Second
	MaxWarmUpPeriod = 24 * time.Hour
	MaxColdFactor   = 1000
	MaxWaitLimit    = 24 * time.Hour
	MaxThrottle     = family.MaxRate // units per second of a throttle or a token bucket
	MaxBurst        = family.MaxBurst
	MaxThreshold    = 1e15
	MaxNotify       = family.MaxNotify

	MaxUnit         = engine.MaxUnitName             // bytes of a unit's name
	MaxCost         = engine.MaxCost                 // units of a call
	MaxCostBurst    = MaxBurst * family.CostScale    // units of a rule with a unit
	MaxCostThrottle = MaxThrottle * family.CostScale // likewise, per second
	MaxMaxOverdraft = family.MaxOverdraft
)

// Origins with a special meaning.
const (
	OriginDefault = "default" // all callers together
	OriginOther   = "other"   // callers that no rule of the resource names
)

// Normalized returns the rule with defaults filled in for every field that it reads. It returns a
// [spec.FieldError] for the first invalid field. coldFactor is the engine's.
func (r Rule) Normalized(coldFactor int) (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	r, err := r.checkQuota()
	if err = cmp.Or(r.checkNames(), r.checkEnums(), err, r.checkRead(), r.checkTogether(), r.checkShared(), r.checkUnit(), r.checkShare(), r.checkBurst()); err != nil {
		return r, err
	}
	r.Share = r.Share.Normalized(MaxPerShareQueue)
	r.Cluster = r.Cluster.Normalized()
	r.Origin = cmp.Or(r.Origin, OriginDefault)
	if r.Relation == Chain && r.Ref == node.SentinelDefaultContext {
		r.Ref = node.DefaultContext
	}
	if r.Metric == QPS && r.Per == spec.PerNone {
		r.Interval = cmp.Or(r.Interval, time.Second)
	}
	if r.windowed() && r.Buckets == 0 {
		if r.Buckets = r.Window.buckets(r.Interval); r.Shared() {
			r.Buckets = cluster.Buckets
		}
	}
	if r.Behavior.warmsUp() {
		r.WarmUpPeriod = cmp.Or(r.WarmUpPeriod, 10*time.Second)
		r.ColdFactor = cmp.Or(r.ColdFactor, coldFactor)
	}
	if r.Behavior.queues() {
		r.MaxWait = cmp.Or(r.MaxWait, 500*time.Millisecond)
	}
	if err := r.checkNumbers(); err != nil {
		return r, err
	}
	if len(r.Notify) == 0 {
		r.Notify = nil // one form for none
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) checkNames() error {
	if err := r.Info().Check(); err != nil {
		return err
	}
	switch {
	case r.Relation == Direct && r.Ref != "":
		return spec.BadField("ref", "has no meaning for relation direct: remove it, or set relation to associated or chain")
	case r.Relation == Associated && r.Ref == "":
		return spec.BadField("ref", "is required by relation associated: name the resource to look at")
	case r.Relation == Chain && r.Ref == "":
		return spec.BadField("ref", "is required by relation chain: name the context that the rule applies to")
	}
	return cmp.Or(spec.CheckName("origin", r.Origin), spec.CheckName("ref", r.Ref))
}

func (r Rule) checkEnums() error {
	switch {
	case !metricNames.Has(r.Metric):
		return spec.BadField("metric", "%d is unknown: use flow.QPS or flow.Concurrency", r.Metric)
	case !relationNames.Has(r.Relation):
		return spec.BadField("relation", "%d is unknown: use flow.Direct, flow.Associated or flow.Chain", r.Relation)
	case !behaviorNames.Has(r.Behavior):
		return spec.BadField("behavior", "%d is unknown: use flow.Reject, flow.WarmUp, flow.Throttle, flow.WarmUpThrottle or flow.TokenBucket", r.Behavior)
	case r.Metric == Concurrency && r.Behavior != Reject:
		return spec.BadField("behavior", "%s does not go with metric concurrency: use reject", r.Behavior)
	case r.Relation == Associated && !r.Behavior.windows():
		return spec.BadField("behavior", "%s does not go with relation associated, which counts another resource's traffic: use reject or warmUp", r.Behavior)
	case !windowNames.Has(r.Window):
		return spec.BadField("strict", "%d is unknown: use flow.Strict or flow.Ring", r.Window)
	}
	return nil
}

// checkRead refuses values in fields that the rule doesn't read.
func (r Rule) checkRead() error {
	switch {
	case r.Interval != 0 && r.Metric == Concurrency:
		return r.unread("interval", "")
	case r.Buckets != 0 && !r.windowed():
		return r.unread("buckets", "reject or warmUp")
	case r.Window != Strict && !r.windowed():
		return r.unread("strict", "reject or warmUp")
	case r.WarmUpPeriod != 0 && !r.Behavior.warmsUp():
		return r.unread("warmUpPeriod", "warmUp or warmUpThrottle")
	case r.ColdFactor != 0 && !r.Behavior.warmsUp():
		return r.unread("coldFactor", "warmUp or warmUpThrottle")
	case r.MaxWait != 0 && !r.Behavior.queues():
		return r.unread("maxWait", "throttle or warmUpThrottle")
	case r.Burst != 0 && r.Behavior != TokenBucket && r.Behavior != Throttle:
		return r.unread("burst", "throttle or tokenBucket")
	}
	return r.checkNotify()
}

// checkBurst refuses a throttle's burst with fields that it can't go with.
func (r Rule) checkBurst() error {
	if r.Burst == 0 || r.Behavior != Throttle {
		return nil
	}
	switch {
	case r.Share.Given():
		return spec.BadField("burst", "has no meaning for share, whose tenants take turns: remove burst or share")
	case r.Shed != spec.ShedNone:
		return spec.BadField("burst", "has no meaning for shed, whose levels take turns: remove burst or shed")
	case r.MemoryThreshold != 0:
		return spec.BadField("burst", "has no meaning for memoryThreshold: a burst has no fixed rate to be saved up at; remove burst or memoryThreshold")
	case r.Shared():
		return spec.BadField("burst", "has no meaning for cluster and behavior throttle: members share turns, and none are saved up; remove burst or cluster")
	}
	return nil
}

// checkTogether refuses fields that depend on a single resource.
func (r Rule) checkTogether() error {
	switch {
	case !r.Together:
		return nil
	case r.Relation == Associated:
		return spec.BadField("together", "has no meaning for relation associated, which counts one resource for all: remove it")
	case r.Behavior.warmsUp():
		return spec.BadField("together", "has no meaning for behavior %s, which follows the calls of one resource: remove it, or set behavior to reject, throttle or tokenBucket", r.Behavior)
	case r.Origin == OriginOther:
		return spec.BadField("together", "has no meaning for origin other, which gives each caller of a resource a limit: remove it, name a caller, or use a hotspot rule with a param that names it")
	}
	return nil
}

// unread returns the error for a field that the rule's metric or behavior doesn't use. readers
// names the behaviors that do.
func (r Rule) unread(field, readers string) error {
	if r.Metric == Concurrency {
		return spec.BadField(field, "has no meaning for metric concurrency: remove it, or set metric to qps")
	}
	return spec.BadField(field, "has no meaning for behavior %s: remove it, or set behavior to %s", r.Behavior, readers)
}

func (r Rule) checkNumbers() error {
	if !(r.Threshold >= 0) || r.Threshold > MaxThreshold {
		return spec.BadField("threshold", "is %v: use a finite number from 0 to %g", r.Threshold, float64(MaxThreshold))
	}
	if r.Metric == QPS && r.Per == spec.PerNone {
		if r.Interval > MaxInterval {
			return spec.BadField("interval", "is %v: use a duration from %v to %v, or per: day, week or month", r.Interval, MinInterval, MaxInterval)
		}
		if err := spec.CheckDuration("interval", r.Interval, MinInterval, MaxInterval); err != nil {
			return err
		}
	}
	if r.windowed() {
		if err := r.shape().Validate(); err != nil {
			return spec.BadField("buckets", "%v", err)
		}
	}
	if r.Behavior.warmsUp() {
		if err := spec.CheckDuration("warmUpPeriod", r.WarmUpPeriod, MinWarmUpPeriod, MaxWarmUpPeriod); err != nil {
			return err
		}
		if r.ColdFactor < 2 || r.ColdFactor > MaxColdFactor {
			return spec.BadField("coldFactor", "is %d: use a whole number from 2 to %d", r.ColdFactor, MaxColdFactor)
		}
	}
	if r.Behavior.queues() {
		if err := spec.CheckDuration("maxWait", r.MaxWait, 0, MaxWaitLimit); err != nil {
			return err
		}
		most := float64(MaxThrottle)
		if r.Unit != "" {
			most = MaxCostThrottle
		}
		if perSecond := r.Threshold / r.Interval.Seconds(); perSecond > most {
			return spec.BadField("threshold", "is %g per second: a throttle admits at most %g per second", perSecond, most)
		}
	}
	if r.Behavior == TokenBucket || r.Burst != 0 {
		if err := family.CheckBucket("threshold", r.Threshold, r.Interval, r.Burst, r.Unit != ""); err != nil {
			return err
		}
	}
	return cmp.Or(r.checkSharedNumbers(), r.checkUnitNumbers(), r.checkMemory())
}

func (r Rule) shape() stat.Shape {
	return stat.Shape{Interval: r.Interval, Buckets: r.Buckets, Strict: r.Window == Strict}
}

// limit returns the threshold in whole units; windows and semaphores know no fractions.
func (r Rule) limit() int64 { return int64(math.Floor(r.Threshold)) }

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string {
	id := "flow:" + r.Resource
	if r.Together {
		id += ":together"
	}
	if r.Metric != QPS {
		id += ":" + r.Metric.String()
	}
	if r.Origin != OriginDefault {
		id += ":origin=" + r.Origin
	}
	if r.Relation != Direct {
		id += fmt.Sprintf(":%s=%s", r.Relation, r.Ref)
	}
	if r.Behavior != Reject {
		id += ":" + r.Behavior.String()
	}
	if r.Per != spec.PerNone {
		id += ":per=" + r.Per.String()
	}
	if r.Unit != "" {
		id += ":unit=" + r.Unit
	}
	return id
}
