package replay

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"
)

// Trace is one scenario: a configuration, rules, and timed operations with the outcome that the
// real Java Sentinel had for each.
type Trace struct {
	Name         string            `json:"name"`
	Tags         []string          `json:"tags"`
	Config       Config            `json:"config"`
	Rules        Rules             `json:"rules"`
	IgnoredRules []string          `json:"ignoredRules"`
	Ops          []json.RawMessage `json:"ops"`
}

// Config is the configuration of a scenario, in the units of its names.
type Config struct {
	EpochMs          int64  `json:"epochMs"` // the clock at t = 0
	SampleCount      int    `json:"sampleCount"`
	IntervalMs       int64  `json:"intervalMs"`
	OccupyTimeoutMs  int64  `json:"occupyTimeoutMs"`
	ColdFactor       int    `json:"coldFactor"`
	StatisticMaxRtMs int64  `json:"statisticMaxRtMs"`
	Sleep            string `json:"sleep"` // record, advance or park
}

func (c Config) interval() time.Duration { return time.Duration(c.IntervalMs) * time.Millisecond }

func (c Config) occupyTimeout() time.Duration {
	return time.Duration(c.OccupyTimeoutMs) * time.Millisecond
}

// Rules are lists of rules by family.
type Rules map[string]json.RawMessage

// families returns the families with at least one rule.
func (r Rules) families() []string {
	var families []string
	for family, list := range r {
		if string(bytes.TrimSpace(list)) != "[]" {
			families = append(families, family)
		}
	}
	return families
}

// Op is one operation and its outcome.
type Op struct {
	T           int64             `json:"t"` // ms after the epoch
	Kind        string            `json:"op"`
	ID          int               `json:"id"`
	Resource    string            `json:"resource"`
	Parent      *int              `json:"parent"`
	Context     string            `json:"context"`
	Origin      string            `json:"origin"`
	Count       *int64            `json:"count"`
	Prioritized bool              `json:"prioritized"`
	Args        []json.RawMessage `json:"args"`
	EntryType   string            `json:"entryType"`
	Error       bool              `json:"error"`
	Node        NodeRef           `json:"node"`
	Load        *float64          `json:"load"`
	CPU         *float64          `json:"cpu"`
	Rules       Rules             `json:"rules"`
	Rule        string            `json:"rule"` // the inspected rule
	Expect      Expect            `json:"expect"`
}

// NodeRef names a node.
type NodeRef struct {
	Kind     string `json:"kind"` // resource, origin, call, entrance, inbound or root
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
	Context  string `json:"context"`
}

// Expect is the outcome of an operation. Its fields depend on the operation's kind.
type Expect struct {
	Result       string         `json:"result"` // pass, wait or block
	WaitMs       *float64       `json:"waitMs"`
	Via          string         `json:"via"`
	BlockedBy    string         `json:"blockedBy"`
	Rule         string         `json:"rule"`
	Clock        *float64       `json:"clock"` // ms after the epoch
	Error        string         `json:"error"`
	Snapshot     figures        `json:"snapshot"`
	Seconds      []figures      `json:"seconds"`
	Tree         *treeNode      `json:"tree"`
	Errors       map[string]any `json:"errors"`
	IgnoredRules []string       `json:"ignoredRules"`

	Events    []breakerEvent `json:"events"`
	State     *string        `json:"state"` // of the inspected rule
	RetryAtMs *float64       `json:"retryAtMs"`
}

// wait returns the wait in the trace, to the nanosecond, or 0 if there was none.
func (e *Expect) wait() time.Duration {
	if e.WaitMs == nil {
		return 0
	}
	return fromMs(*e.WaitMs)
}

func (e *Expect) verdict() verdict { return verdict{e.Result, e.wait(), e.BlockedBy, e.Rule} }

// borrows reports whether the call waited for an upcoming bucket.
func (e *Expect) borrows() bool { return strings.Contains(e.Via, "borrow") }

func fromMs(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// figures are numbers under the traces' names. NaN stands for a missing one.
type figures map[string]float64

// treeNode is a node of the invocation tree with its subtree.
type treeNode struct {
	Name     string
	Kind     string // root, entrance or call
	Figures  figures
	Children []*treeNode // by name
}

// UnmarshalJSON reads every number as a figure.
func (n *treeNode) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	n.Figures = make(figures)
	for name, value := range fields {
		var err error
		switch name {
		case "name":
			err = json.Unmarshal(value, &n.Name)
		case "kind":
			err = json.Unmarshal(value, &n.Kind)
		case "children":
			err = json.Unmarshal(value, &n.Children)
		default:
			var number float64
			err = json.Unmarshal(value, &number)
			n.Figures[name] = number
		}
		if err != nil {
			return err
		}
	}
	return nil
}
