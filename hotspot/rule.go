package hotspot

import (
	"cmp"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Rule limits each value of an argument of one resource, or each combination of several. Resource,
// Threshold, and either Index, Param or Keys are enough:
//
//	hotspot.Rule{Resource: "GET /orders", Param: "user", Threshold: 10}
//
// admits ten calls per second for every user and rejects the others. By default calls without the
// argument are not limited; see Missing. Each element of a slice is a value and is limited; an
// element that occurs twice takes twice as much.
//
// Setting a field that no rule of this metric and behavior reads is an error; the zero value leaves
// a field unset.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies to
	// every resource that no other enforced hotspot rule applies to. Each resource has separate
	// limits for its values, unless the rule counts them Together.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// hotspot rule matches it more specifically. api.MatchRegex is a regular expression (RE2) that
	// must match the whole name, where a dot matches every character; it applies to every name that
	// it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// Together gives each value one limit over all names that the rule matches, besides the rules for
	// single names: the rule applies whether or not another is more specific, and replaces none. A call
	// nested in one that the rule has counted isn't counted again until that one exits. "*" counts
	// inbound calls; for all, use a regular expression, such as ".*". Only for patterns.
	Together bool `yaml:"together,omitempty"`
	// Index is the position of the argument, among those given with api.Args, whose values are
	// limited: At(0) is the first, At(-1) the last of each call.
	Index Index `yaml:"index,omitempty"`
	// Param is the name of the attachment (api.Param) whose values are limited, instead of an
	// argument.
	Param string `yaml:"param,omitempty"`
	// Keys are the parts of a call whose combinations are limited, instead of an argument or an
	// attachment: "param NAME" is the attachment with that name, "arg 0" the argument at a position as
	// in Index, "origin" the caller, and "resource" the name of the resource, which exceptions can
	// name. 1 to 4. If a part has several values, each of them makes a key; of a further such part the
	// first value counts. A call without one of the parts is a call without the value; see Missing.
	Keys []string `yaml:"keys,omitempty"`
	// Missing decides on calls without the value, or with empty text: shared gives all of them one
	// limit, the limit of the value "", which can be an exception, and with several Keys puts "" in
	// place of the missing part; refuse refuses them; unlimited doesn't limit them. The zero value does as Sentinel does: calls without a value are not
	// limited, and empty text is a value.
	Missing Missing `yaml:"missing,omitempty"`
	// Threshold is the limit of each value: units per Interval for QPS, units in flight for
	// Concurrency. Finite and not negative; 0 blocks every value. Fractions are exact for the
	// spacing of a throttle and the rate of a token bucket; elsewhere they are rounded down.
	Threshold float64 `yaml:"threshold"`
	// Interval is the period of Threshold. 10 ms to 24 h; 0 means one second. Only with metric QPS.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Per makes the limit of each value a quota: Threshold units in each day, week or month of a
	// calendar, in place of an Interval. A raised threshold frees room at once, refused calls don't
	// count, and RetryAfter is the time to the next period. Only with metric QPS and behavior Reject,
	// without Cluster. A value that has used anything keeps its place among MaxValues until its period
	// ends.
	Per spec.Per `yaml:"per,omitempty"`
	// Timezone is the name of the time zone of the calendar, as in "Europe/Berlin". Empty means UTC.
	// Needs Per.
	Timezone string `yaml:"timezone,omitempty"`
	// Starts is the start of a period: the time of a day ("06:00"), a day of the week ("monday",
	// "monday 06:00") or of the month ("15", "15 06:00"), where a month without that day uses its last
	// one. Empty means midnight, Monday and the first. Needs Per.
	Starts string `yaml:"starts,omitempty"`
	// Window selects the intervals in which the limit of behavior Reject holds. The zero value is
	// Strict: every real interval. Refill, in files strict: false, is the bucket of
	// alibaba/Sentinel. Only with metric QPS and behavior Reject. Limits that a cluster shares are
	// always strict.
	Window Window `yaml:"strict,omitempty"`
	// Burst is the number of units that a value may take after a pause, in addition to Threshold
	// (behavior Reject with window Refill), or to the unit that is due (behavior TokenBucket, whose
	// bucket holds Burst + 1 units, and Throttle, where further units wait). 0 to 10⁹, with a Unit 10¹².
	// Only with metric QPS, and these behaviors.
	Burst int `yaml:"burst,omitempty"`
	// Metric is the quantity that Threshold limits. The zero value is QPS.
	Metric Metric `yaml:"metric,omitempty"`
	// Behavior decides what happens to calls over the limit. The zero value is Reject.
	Behavior Behavior `yaml:"behavior,omitempty"`
	// MaxWait is the longest time in the queue of a value. Up to 24 h; 0 means 500 ms. Only with
	// Throttle.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// Unit is the kind of units that the rule counts, as named by api.Cost, and Estimate, MaxReserve
	// and MaxOverdraft are as in a flow rule. Empty means calls, or the units of api.Units. Not with
	// Refill.
	Unit string `yaml:"unit,omitempty"`
	// Estimate is the whole number of units reserved by a call that names no cost in Unit. At most
	// Threshold; 0 means that the rule doesn't apply to such calls. Needs a Unit.
	Estimate float64 `yaml:"estimate,omitempty"`
	// MaxReserve is the maximum whole number of units that a call reserves of a value; units used
	// beyond them are charged when it is settled. 0 means no maximum. Needs a Unit; not with Throttle.
	MaxReserve float64 `yaml:"maxReserve,omitempty"`
	// MaxOverdraft bounds what settled calls are charged beyond a value's limit, as a share of it;
	// the rest is forgiven. Up to 100; 0 means no bound. Needs a Unit, metric QPS, and behavior
	// Reject or TokenBucket.
	MaxOverdraft float64 `yaml:"maxOverdraft,omitempty"`
	// Plans are thresholds by the plan that the latest call of a value named (api.Plan), as in
	// {free: 10, pro: 100}. Units that the value has used stay used when its plan changes. Exceptions
	// go before plans; a plan that isn't listed means Threshold. At most 10,000, with names of 1 to 64
	// bytes.
	Plans map[string]float64 `yaml:"plans,omitempty"`
	// LimitsFromCode asks api.Config.Limits for the limit of each value that no exception names, in the
	// background; until it answers, the value's plan or Threshold holds. Needs an ID, which is
	// passed to the function.
	LimitsFromCode bool `yaml:"limitsFromCode,omitempty"`
	// Notify lists up to 4 shares of the limit, as in ["80%", "100%"]. A notice goes to the log and to the
	// listeners of api.Guard.OnNotice when a value's use reaches a share, at most once per value and
	// Interval, or period of Per. Only with metric QPS and behavior Reject, without Cluster.
	Notify []string `yaml:"notify,omitempty"`
	// Lockout refuses a value for a while that was refused in several intervals in a row. The zero value
	// doesn't. Only with metric QPS, without Cluster.
	Lockout Lockout `yaml:"lockout,omitempty"`
	// Exceptions are values with their own limits. Of several that match a key, the one with fewer
	// stars decides, or else the one that names the first part in which they differ.
	Exceptions []Exception `yaml:"exceptions,omitempty"`
	// MaxValues is the number of values that the rule tracks, not counting those in Exceptions, unless
	// a star matches them. 1 to 1,000,000; 0 means 10,000. Further values share limits.
	MaxValues int `yaml:"maxValues,omitempty"`
	// Cluster makes several processes share the limits of values, and determines how. The zero value
	// keeps them local to this process. Needs an ID, and behavior Reject or Throttle without Burst.
	Cluster cluster.Rule `yaml:"cluster,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// Exception is a value with its own limit, as in
//
//	hotspot.Exception{Value: hotspot.ValueOf("batch"), Threshold: 100}
type Exception struct {
	// Value is text, a number or a boolean; see [ValueOf]. Required, but not with Values.
	Value argument.Value `yaml:"value,omitempty"`
	// Values are those of the parts of a key, instead of Value, in a rule with several Keys. The text
	// "*" stands for any value: the exception applies to each key with the others, and each of these
	// keys has the limit for itself.
	Values []argument.Value `yaml:"values,omitempty"`
	// Threshold is the limit of that value, with the rule's Interval and Burst.
	Threshold float64 `yaml:"threshold"`
}

// ValueOf returns v as the value of an exception; see [argument.Of].
func ValueOf(v any) argument.Value { return argument.Of(v) }

// The ranges of a rule's fields.
const (
	MinInterval   = stat.MinInterval
	MaxInterval   = stat.MaxInterval
	MaxWaitLimit  = 24 * time.Hour
	MaxThrottle   = family.MaxRate // units per second of a throttle or a token bucket
	MaxThreshold  = 1e15
	MaxIndex      = 1000
	MaxKeys       = 4
	MaxPlans      = 10_000
	MaxNotify     = family.MaxNotify
	MaxMaxValues  = 1_000_000
	MaxExceptions = 10_000
	MaxBurst      = family.MaxBurst
)

const defaultMaxValues = 10_000

// Normalized returns the rule with defaults filled in for every field that it reads. It returns a
// [spec.FieldError] for the first invalid field.
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	r, err := r.checkPer()
	if err = cmp.Or(r.checkNames(), r.checkLimits(), r.checkEnums(), err, r.checkShared(), r.checkUnit()); err != nil {
		return r, err
	}
	r.Cluster = r.Cluster.Normalized()
	if r.Metric == QPS && r.Per == spec.PerNone {
		r.Interval = cmp.Or(r.Interval, time.Second)
	}
	if r.Behavior == Throttle {
		r.MaxWait = cmp.Or(r.MaxWait, 500*time.Millisecond)
	}
	r.MaxValues = cmp.Or(r.MaxValues, defaultMaxValues)
	if err = cmp.Or(r.checkNumbers(), r.checkUnitNumbers(), r.checkExceptions(), r.checkPlans()); err != nil {
		return r, err
	}
	if len(r.Exceptions) == 0 {
		r.Exceptions = nil // one form for no exceptions
	}
	if len(r.Keys) == 0 {
		r.Keys = nil
	}
	if len(r.Plans) == 0 {
		r.Plans = nil
	}
	if len(r.Notify) == 0 {
		r.Notify = nil
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) checkNames() error {
	if err := r.Info().Check(); err != nil {
		return err
	}
	switch {
	case len(r.Keys) > 0:
		return r.checkKeys()
	case !r.Index.given && r.Param == "":
		return spec.BadField("index", "or param or keys is required: set index to the position of an argument, 0 for the first, param to the name of an attachment, or keys to several of them")
	case r.Index.given && r.Param != "":
		return spec.BadField("param", "does not go with index: a rule limits one argument or one attachment; remove one of the two")
	case r.Index.at < -MaxIndex || r.Index.at > MaxIndex:
		return spec.BadField("index", "is %d: use 0 for the first argument, -1 for the last, at most %d", r.Index.at, MaxIndex)
	}
	return nil
}

func (r Rule) checkEnums() error {
	switch {
	case !metricNames.Has(r.Metric):
		return spec.BadField("metric", "%d is unknown: use hotspot.QPS or hotspot.Concurrency", r.Metric)
	case !behaviorNames.Has(r.Behavior):
		return spec.BadField("behavior", "%d is unknown: use hotspot.Reject, hotspot.Throttle or hotspot.TokenBucket", r.Behavior)
	case !missingNames.Has(r.Missing):
		return spec.BadField("missing", "%d is unknown: use hotspot.MissingUnlimited, hotspot.MissingShared or hotspot.MissingRefuse", r.Missing)
	case r.Metric == Concurrency && r.Behavior != Reject:
		return spec.BadField("behavior", "%s does not go with metric concurrency: use reject", r.Behavior)
	case r.Interval != 0 && r.Metric == Concurrency:
		return r.unread("interval", "")
	case !windowNames.Has(r.Window):
		return spec.BadField("strict", "%d is unknown: use hotspot.Strict or hotspot.Refill", r.Window)
	case r.Window != Strict && (r.Metric != QPS || r.Behavior != Reject):
		return r.unread("strict", "reject")
	case r.Burst != 0 && r.Metric == Concurrency:
		return r.unread("burst", "")
	case r.MaxWait != 0 && r.Behavior != Throttle:
		return r.unread("maxWait", "throttle")
	}
	return cmp.Or(r.checkNotify(), r.checkLockout())
}

// counts reports whether each value has a window, or a bucket that is refilled as in Sentinel.
func (r Rule) counts() (strict, refills bool) {
	counts := r.Metric == QPS && r.Behavior == Reject && r.Per == spec.PerNone && !r.leases()
	return counts && r.Window == Strict, counts && r.Window == Refill
}

// fills reports whether the rule counts each value's units and refills them over time.
func (r Rule) fills() bool { return r.Metric == QPS && r.Behavior != Throttle }

// unread returns the error for a field that the rule's metric or behavior doesn't use. readers
// names the behaviors that do.
func (r Rule) unread(field, readers string) error {
	if r.Metric == Concurrency {
		return spec.BadField(field, "has no meaning for metric concurrency: remove it, or set metric to qps")
	}
	return spec.BadField(field, "has no meaning for behavior %s: remove it, or set behavior to %s", r.Behavior, readers)
}

func (r Rule) checkNumbers() error {
	if err := r.checkThreshold("threshold", r.Threshold); err != nil {
		return err
	}
	if r.Metric == QPS && r.Per == spec.PerNone {
		if r.Interval > MaxInterval {
			return spec.BadField("interval", "is %v: use a duration from %v to %v, or per: day, week or month", r.Interval, MinInterval, MaxInterval)
		}
		if err := spec.CheckDuration("interval", r.Interval, MinInterval, MaxInterval); err != nil {
			return err
		}
	}
	if r.Burst < 0 || r.Burst > MaxBurst && r.Unit == "" { // with a unit, CheckBucket has another bound
		return spec.BadField("burst", "is %d: use a number from 0 to %d", r.Burst, MaxBurst)
	}
	if r.Behavior == Throttle {
		if err := spec.CheckDuration("maxWait", r.MaxWait, 0, MaxWaitLimit); err != nil {
			return err
		}
	}
	if r.MaxValues < 1 || r.MaxValues > MaxMaxValues {
		return spec.BadField("maxValues", "is %d: use a number from 1 to %d, or leave it out for %d", r.MaxValues, MaxMaxValues, defaultMaxValues)
	}
	if r.Burst != 0 && r.Metric == QPS && r.Behavior == Reject && r.Window == Strict && !r.Shared() {
		return spec.BadField("burst", "has no meaning for a strict window, which admits the threshold in every interval: remove it, set behavior to tokenBucket, or strict to false for Sentinel's bucket")
	}
	return r.checkSharedLimit(r.Threshold)
}

func (r Rule) checkThreshold(field string, threshold float64) error {
	if !(threshold >= 0) || threshold > MaxThreshold {
		return spec.BadField(field, "is %v: use a finite number from 0 to %g", threshold, float64(MaxThreshold))
	}
	if r.Behavior == TokenBucket || r.Behavior == Throttle && r.Burst != 0 {
		return family.CheckBucket(field, threshold, r.Interval, r.Burst, r.Unit != "")
	}
	most := float64(MaxThrottle)
	if r.Unit != "" {
		most *= family.CostScale
	}
	if perSecond := threshold / r.Interval.Seconds(); r.Behavior == Throttle && perSecond > most {
		return spec.BadField(field, "is %g per second: a throttle admits at most %g per second", perSecond, most)
	}
	return nil
}

func (r Rule) checkExceptions() error {
	if len(r.Exceptions) > MaxExceptions {
		return spec.BadField("exceptions", "has %d entries: a rule can have at most %d", len(r.Exceptions), MaxExceptions)
	}
	seen := make(map[argument.Value]int, len(r.Exceptions))
	for i, x := range r.Exceptions {
		if err := r.checkNamed(i, x); err != nil {
			return err
		}
		v, _ := x.key()
		if j, twice := seen[v]; twice {
			return spec.BadField("exceptions", "%v appears twice, in entries %d and %d: remove one", v, j, i)
		}
		seen[v] = i
		if v.IsEmpty() && (r.Missing == MissingUnlimited || r.Missing == MissingRefuse) {
			return spec.BadField("exceptions", `has "", but missing already makes such calls %s: remove one of the two`, map[Missing]string{
				MissingUnlimited: "not limited", MissingRefuse: "refused",
			}[r.Missing])
		}
		if err := r.checkThreshold("exceptions", x.Threshold); err != nil {
			return err
		}
		if err := r.checkSharedLimit(x.Threshold); err != nil {
			return err
		}
	}
	return nil
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string {
	id := "hotspot:" + r.Resource + ":" + r.source()
	if r.Together {
		id += ":together"
	}
	if r.Metric != QPS {
		id += ":" + r.Metric.String()
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

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Together: r.Together, Mode: r.Mode, Refusal: r.Refusal}
}

// quota is a limit in the form that enforcement needs.
type quota struct {
	limit   float64      // the threshold
	none    bool         // nothing passes
	units   int64        // of the threshold, per interval or in flight
	size    int64        // of a full bucket
	perUnit float64      // nanoseconds
	unit    meter.Moment // of a token bucket: the time to refill one unit; zero if none is refilled
	turn    meter.Moment // of a throttle with a burst: the time of a unit of it; otherwise zero
	burst   int64        // the time of that burst: ns
	named   bool         // an exception names the value, which has a cell outside the ring
	private bool         // the rule has always named the value: none of its units are in the rest
	stars   string       // the exception, if stars in it match the value
	plan    *plan        // whose limit this is, or nil
}

func (r Rule) quota(threshold float64) quota {
	units := int64(math.Floor(threshold))
	q := quota{
		limit:   threshold,
		none:    threshold == 0 || units == 0 && r.Behavior == Reject,
		units:   units,
		size:    units + int64(r.Burst),
		perUnit: float64(r.Interval) / threshold,
	}
	if r.Behavior == TokenBucket {
		if q.size = family.BucketSize(r.Burst); !q.none {
			q.unit = meter.UnitCost(r.Interval, threshold)
		}
	}
	if r.Behavior == Throttle && r.Burst > 0 && !q.none {
		q.turn = meter.UnitCost(r.Interval, threshold)
		q.burst = meter.BurstTime(int64(r.Burst), q.turn)
	}
	return q
}

// cost returns the time that n units take up in the queue.
func (q *quota) cost(n int64) meter.Moment { return meter.Cost(n, q.perUnit) }

// wait returns the wait of n units for the turn after last.
func (q *quota) wait(last meter.Moment, now, n int64) time.Duration {
	return last.Wait(now, q.burst, q.cost(n))
}
