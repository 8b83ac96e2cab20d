package api

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// The types that guarded code uses. They come from other packages, under names that need no further
// import.
type (
	// BlockError is the refusal of a call: the rule that refused it, and when to retry.
	BlockError = core.BlockError
	// Kind is a family of rules, or a slot of your own.
	Kind = core.Kind
	// Remaining has the units that a rule would still admit; see [Admitted.Remaining].
	Remaining = core.Remaining
	// Mode decides whether a rule is enforced.
	Mode = spec.Mode
	// Match determines how a rule's Resource names resources.
	Match = spec.Match
	// Response is the response of adapters to calls that a rule refuses.
	Response = spec.Response
	// Share divides a rule's limit between tenants while calls wait.
	Share = spec.Share
	// Level is the criticality of a call; see [Criticality].
	Level = core.Level
	// Floors keep levels of calls from starving under a rule with a shed order.
	Floors = spec.Floors
	// RuleSet holds the rules of every family, for [LoadRules].
	RuleSet = rules.Set
	// Reload is one outcome of watching a source of rules.
	Reload = rules.Reload
	// Refusal is passed to the listeners of [Guard.OnBlocked].
	Refusal = core.Refusal
	// Notice is passed to the listeners of [Guard.OnNotice].
	Notice = core.Notice
	// Status is the state of the sources of the rules; see [Guard.Status].
	Status = rules.Status
	// Explanation holds the decisions that the rules would make on a call; see [Explain].
	Explanation = core.Explanation
	// SourceOptions configure the watching of a store; see [Guard.WatchSource].
	SourceOptions = rules.SourceOptions
	// Revision is one state of the rules of all sources; see [Guard.Revisions].
	Revision = rules.Revision
	// SourceError reports that a source of the rules was declared twice.
	SourceError = rules.SourceError
	// Caps bound the nodes of a Guard's tree.
	Caps = node.Caps
	// ManualClock is a clock for tests: it stands still until Advance moves it. SetSleep decides
	// what happens to calls that wait. Its methods are those of clocks.Manual: go doc
	// core/clocks.Manual.
	ManualClock = clocks.Manual
	// SleepMode decides what a ManualClock does with a call that waits.
	SleepMode = clocks.SleepMode
)

// The errors of [Entry], for errors.Is.
var (
	// ErrBlocked matches every refusal.
	ErrBlocked = core.ErrBlocked
	// ErrInvalid is the refusal of an invalid call: one without a name, for example.
	ErrInvalid = core.ErrInvalid
	// ErrExited is the error of [Admitted.More] for a call that has exited, or has settled the unit.
	ErrExited = core.ErrExited
	// ErrDraining is wrapped by the error of a call that waited for a rule, or would have had to,
	// when the Guard drained; see [Guard.Drain].
	ErrDraining = core.ErrDraining
	// ErrRetryBudget matches the refusal of a call that is marked by [Retry] or [WithRetry] while too
	// many others are in flight. No other attempt will help now: give up.
	ErrRetryBudget = core.ErrRetryBudget
)

// The results of [KindOf].
const (
	KindNone      = core.KindNone // not a refusal
	KindAuthority = core.KindAuthority
	KindSystem    = core.KindSystem
	KindHotspot   = core.KindHotspot
	KindFlow      = core.KindFlow
	KindIsolation = core.KindIsolation
	KindAdaptive  = core.KindAdaptive
	KindBreaker   = core.KindBreaker
	KindUpstream  = core.KindUpstream
	KindOutlier   = core.KindOutlier
	KindCustom    = core.KindCustom // no family: a slot of your own
)

// The ways in which a rule names resources.
const (
	MatchExact  = spec.MatchExact  // the resource with exactly that name
	MatchRegex  = spec.MatchRegex  // resources whose whole name matches a regular expression
	MatchPrefix = spec.MatchPrefix // resources whose name begins with the text before the final star
	MatchPath   = spec.MatchPath   // resources with the same parts between slashes; a star matches any part
)

// AnyResource is the Resource of a rule for all resources without their own rule.
const AnyResource = spec.AnyResource

// The modes of a rule.
const (
	Enforce = spec.Enforce // the rule is enforced
	Shadow  = spec.Shadow  // it counts the calls it would have refused, and refuses none
	Off     = spec.Off     // it is kept but not asked
)

// The levels of criticality, the highest first.
const (
	CriticalPlus  = core.CriticalPlus  // users notice at once if these calls fail, and badly
	Critical      = core.Critical      // the default: users notice if these calls fail
	SheddablePlus = core.SheddablePlus // some of these calls may fail for minutes: batches that are retried
	Sheddable     = core.Sheddable     // all of these calls may fail for a while
)

// The orders in which a rule sheds calls.
const (
	ShedNone   = spec.ShedNone   // any calls, as they come
	ShedLevels = spec.ShedLevels // calls of the lowest criticality first
)

// The periods in which a quota counts.
const (
	PerDay   = spec.PerDay   // days, from midnight unless the rule says otherwise
	PerWeek  = spec.PerWeek  // weeks, from Monday
	PerMonth = spec.PerMonth // months, from the first
)

// The ways in which a [ManualClock] sleeps.
const (
	SleepPark    = clocks.SleepPark    // until the clock is advanced to the wake time
	SleepRecord  = clocks.SleepRecord  // not at all: the wait is recorded
	SleepAdvance = clocks.SleepAdvance // not at all: the clock moves by the wait
)

// KindOf returns the family of the rule that refused a call, [KindNone] if err is not a refusal.
func KindOf(err error) Kind { return core.KindOf(err) }

// NewManualClock returns a clock for tests that stands at start, and holds calls that wait until it
// is advanced; see [ManualClock.SetSleep] for other ways.
func NewManualClock(start time.Time) *ManualClock { return clocks.NewManual(start) }
