package api

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// The types that guarded code meets. They are from other packages, under names that need no further
// import.
type (
	// BlockError is the refusal of a call: which rule refused it, and when to retry.
	BlockError = core.BlockError
	// Kind is a family of rules, or a slot of your own.
	Kind = core.Kind
	// Mode says what the verdict of a rule does.
	Mode = spec.Mode
	// Match says how a rule's Resource names resources.
	Match = spec.Match
	// RuleSet holds the rules of every family, for [LoadRules].
	RuleSet = rules.Set
	// Reload is one outcome of watching a rule file.
	Reload = rules.Reload
	// Refusal is what a listener of [Guard.OnBlocked] is told.
	Refusal = core.Refusal
	// Status is the state of the sources of the rules, see [Guard.Status].
	Status = rules.Status
	// Explanation says what the rules would decide for a call, see [Explain].
	Explanation = core.Explanation
	// SourceOptions say how to watch a store, see [Guard.WatchSource].
	SourceOptions = rules.SourceOptions
	// Revision is one state of the rules of all sources, see [Guard.Revisions].
	Revision = rules.Revision
	// SourceError says that a source of the rules was declared twice.
	SourceError = rules.SourceError
	// Caps bound the nodes of a Guard's tree.
	Caps = node.Caps
	// ManualClock is a clock for tests: it stands still until Advance moves it. SetSleep says what becomes
	// of calls that wait. Its methods are those of clocks.Manual: go doc core/clocks.Manual.
	ManualClock = clocks.Manual
	// SleepMode is what a ManualClock does with a call that waits.
	SleepMode = clocks.SleepMode
)

// What errors.Is finds in the errors of [Entry].
var (
	// ErrBlocked is what every refusal is.
	ErrBlocked = core.ErrBlocked
	// ErrInvalid is what a call that can't be judged is refused with: one without a name, for
	// example.
	ErrInvalid = core.ErrInvalid
	// ErrDraining is in the error of a call that waited for a rule, or would have had to, when the Guard
	// drained, see [Guard.Drain].
	ErrDraining = core.ErrDraining
)

// What [KindOf] distinguishes.
const (
	KindNone      = core.KindNone // no refusal
	KindAuthority = core.KindAuthority
	KindSystem    = core.KindSystem
	KindHotspot   = core.KindHotspot
	KindFlow      = core.KindFlow
	KindIsolation = core.KindIsolation
	KindAdaptive  = core.KindAdaptive
	KindBreaker   = core.KindBreaker
	KindOutlier   = core.KindOutlier
	KindCustom    = core.KindCustom // no family: a slot of your own
)

// The ways in which a rule names resources.
const (
	MatchExact  = spec.MatchExact  // the resource of that very name
	MatchRegex  = spec.MatchRegex  // those whose whole names a regular expression matches
	MatchPrefix = spec.MatchPrefix // those whose names begin with what is before the star at the end
	MatchPath   = spec.MatchPath   // those whose names are the same between slashes, where a star is any part
)

// AnyResource is the Resource of a rule for all resources without a rule of their own.
const AnyResource = spec.AnyResource

// The modes of a rule.
const (
	Enforce = spec.Enforce // its verdict holds
	Shadow  = spec.Shadow  // it counts what it would have refused, and refuses nothing
	Off     = spec.Off     // it is kept but not asked
)

// The ways in which a [ManualClock] sleeps.
const (
	SleepPark    = clocks.SleepPark    // until the clock is advanced to the wake time
	SleepRecord  = clocks.SleepRecord  // not at all: what was asked for is noted
	SleepAdvance = clocks.SleepAdvance // not at all: the clock moves by the wait
)

// KindOf is the family of the rule that refused a call, [KindNone] if err is no refusal.
func KindOf(err error) Kind { return core.KindOf(err) }

// NewManualClock returns a clock for tests that stands at start, and holds calls that
// wait until it is advanced; see [ManualClock.SetSleep] for other ways.
func NewManualClock(start time.Time) *ManualClock { return clocks.NewManual(start) }
