package inspect

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// MarshalJSON returns the tree as one object:
//
//	at         the time, RFC 3339
//	waiting    calls that sleep until a rule lets them run
//	failures   panics of slots; the calls went on without the slot
//	leaked     calls reported because they did not exit in time
//	caps       resources, contexts, calls and origins, each with
//	           used, cap and overflows
//	root       the tree; a node has children
//	resources  the resources that calls asked for; a node has origins
//	inbound    the inbound calls of all resources
//	rules      each rule's counts since it was loaded: kind, id, resource, mode;
//	           asked: whether a call has come that it could apply to; refused:
//	           calls; shadowBlocked: calls that a rule in shadow mode would have
//	           refused; notices, absent if 0; and details, absent if there are none: see type Stats
//	           of the kind's package
//
// [Node.MarshalJSON] describes nodes. Keys are never renamed or removed, but new ones may be added.
// Every number is finite.
func (t Tree) MarshalJSON() ([]byte, error) {
	return marshal(func(j *jsonWriter) { j.tree(t.view()) })
}

// MarshalJSON returns the node with its descendants:
//
//	name, kind            kind is root, entrance, call, resource, origin or inbound
//	escaped               the name as it stands in a URL, absent if it is valid UTF-8
//	overflow              true if it stands for all names beyond a cap, else absent
//	passPerSecond         units admitted, over the second window, extrapolated to a
//	                      second if api.Config.Interval is another time; also block,
//	                      total, complete, exception and occupied
//	avgRtMs, minRtMs      response times over the second window; minRtMs is absent
//	                      and avgRtMs 0 if no call completed
//	p50Ms, p95Ms, p99Ms   of a resource, percentiles of the response times of the last minute,
//	                      within 3.1 %; absent unless api.Config.Percentiles is on and calls completed
//	maxCompletePerBucket  units completed in the best bucket of the second window
//	maxCompletePerSecond  extrapolated: the rate if every bucket were like it
//	inFlight              calls
//	waiting               units borrowed from coming buckets, or in a queue for permits
//	second, lastSecond, minute, lifetime
//	                      counts of the second window, the last whole second, the
//	                      last 60 seconds, and since the node was made
//	details               rules' reports on a resource, each with its kind
//	                      and rule; absent if there are none
//	units                 of a resource, what its calls reserved, refunded, overdrew, were
//	                      forgiven and were refused of each unit, and its uncosted calls, in
//	                      total and in the last minute; absent if there are none
//	children              of root, entrance and call, absent if there are none
//	origins               of a resource, absent if there are none
//
// Counts are units: pass, block, total, complete, exception and occupied; calls: entered and
// exited; and rtMs, the sum of the response times of the exited calls, with minRtMs, the shortest,
// absent if there were none. In a name that is not valid UTF-8, U+FFFD replaces invalid parts. The
// history of the last minute is left out, since it would be most of the text.
func (n Node) MarshalJSON() ([]byte, error) {
	return marshal(func(j *jsonWriter) { j.nodes(n.visits) })
}

// headJSON is the first part of a tree's object.
type headJSON struct {
	At       time.Time `json:"at"`
	Waiting  int64     `json:"waiting"`
	Failures int64     `json:"failures"`
	Leaked   int64     `json:"leaked"`
	Caps     capsJSON  `json:"caps"`
}

func newHeadJSON(t *Tree) headJSON {
	c := t.Caps
	return headJSON{
		At: t.At, Waiting: t.Waiting, Failures: t.Failures, Leaked: t.Leaked,
		Caps: capsJSON{usageJSON(c.Resources), usageJSON(c.Contexts), usageJSON(c.Calls), usageJSON(c.Origins)},
	}
}

// ruleJSON is a rule's counts, with the lines about it in the tree's text.
type ruleJSON struct {
	*core.RuleStats
	Lines []string   `json:"lines,omitempty"` // see core.Details
	Marks []markJSON `json:"marks,omitempty"`
}

// markJSON is the mark shown next to the calls of a resource.
type markJSON struct {
	Resource string `json:"resource"`
	Text     string `json:"text"`
	Urgency  int    `json:"urgency"`
}

func newRuleJSON(r *core.RuleStats, at time.Time) ruleJSON {
	rule := ruleJSON{RuleStats: r}
	if r.Details == nil {
		return rule
	}
	rule.Lines = r.Details.Lines(at)
	for _, d := range r.Details.Resources() {
		if text, urgency := d.Mark(); text != "" {
			rule.Marks = append(rule.Marks, markJSON{d.About(), text, urgency})
		}
	}
	return rule
}

type capsJSON struct {
	Resources usageJSON `json:"resources"`
	Contexts  usageJSON `json:"contexts"`
	Calls     usageJSON `json:"calls"`
	Origins   usageJSON `json:"origins"`
}

type usageJSON struct {
	Used      int   `json:"used"`
	Cap       int   `json:"cap"`
	Overflows int64 `json:"overflows"`
}

// nodeJSON is a node without its descendants.
type nodeJSON struct {
	Name     string   `json:"name"`
	Escaped  string   `json:"escaped,omitempty"`
	Kind     NodeKind `json:"kind"`
	Overflow bool     `json:"overflow,omitempty"`

	PassPerSecond      float64 `json:"passPerSecond"`
	BlockPerSecond     float64 `json:"blockPerSecond"`
	TotalPerSecond     float64 `json:"totalPerSecond"`
	CompletePerSecond  float64 `json:"completePerSecond"`
	ExceptionPerSecond float64 `json:"exceptionPerSecond"`
	OccupiedPerSecond  float64 `json:"occupiedPerSecond"`

	AvgRTMs              float64  `json:"avgRtMs"`
	MinRTMs              *float64 `json:"minRtMs,omitempty"`
	MaxCompletePerBucket int64    `json:"maxCompletePerBucket"`
	MaxCompletePerSecond float64  `json:"maxCompletePerSecond"`
	P50Ms                *float64 `json:"p50Ms,omitempty"`
	P95Ms                *float64 `json:"p95Ms,omitempty"`
	P99Ms                *float64 `json:"p99Ms,omitempty"`
	InFlight             int64    `json:"inFlight"`
	Waiting              int64    `json:"waiting"`

	Second     countsJSON `json:"second"`
	LastSecond countsJSON `json:"lastSecond"`
	Minute     countsJSON `json:"minute"`
	Lifetime   countsJSON `json:"lifetime"`

	Details []core.ResourceDetails `json:"details,omitempty"`
	Units   []core.UnitStats       `json:"units,omitempty"`

	percentiles [3]float64 // targets of P50Ms and so on
}

type countsJSON struct {
	Pass      int64    `json:"pass"`
	Block     int64    `json:"block"`
	Total     int64    `json:"total"`
	Complete  int64    `json:"complete"`
	Exception int64    `json:"exception"`
	Occupied  int64    `json:"occupied"`
	Entered   int64    `json:"entered"`
	Exited    int64    `json:"exited"`
	LongLived int64    `json:"longLived,omitempty"`
	RTMs      float64  `json:"rtMs"`
	MinRTMs   *float64 `json:"minRtMs,omitempty"`

	least float64 // target of MinRTMs
}

// of sets it to the JSON of n. It must not be copied afterwards.
func (j *nodeJSON) of(n *Node) {
	rates := n.Rates()
	*j = nodeJSON{
		Name:     n.Name,
		Escaped:  shown.Escaped(n.Name),
		Kind:     n.Kind,
		Overflow: n.Overflow,

		PassPerSecond:      rates.Pass,
		BlockPerSecond:     rates.Block,
		TotalPerSecond:     n.TotalRate(),
		CompletePerSecond:  rates.Complete,
		ExceptionPerSecond: rates.Exception,
		OccupiedPerSecond:  rates.Occupied,

		AvgRTMs:              avgRTMillis(&n.Second),
		MaxCompletePerBucket: n.MaxComplete(),
		MaxCompletePerSecond: n.MaxCompleteRate(),
		InFlight:             n.InFlight,
		Waiting:              n.Waiting,

		Details: n.Details,
		Units:   n.Units,
	}
	j.Second.of(&n.Second)
	j.LastSecond.of(&n.LastSecond)
	j.Minute.of(&n.Minute)
	j.Lifetime.of(&n.Lifetime)
	j.MinRTMs = j.Second.MinRTMs
	if p := &n.Percentiles; p.Count > 0 {
		j.percentiles = [...]float64{shown.Millis(p.P50), shown.Millis(p.P95), shown.Millis(p.P99)}
		j.P50Ms, j.P95Ms, j.P99Ms = &j.percentiles[0], &j.percentiles[1], &j.percentiles[2]
	}
}

func (j *countsJSON) of(c *stat.Counts) {
	*j = countsJSON{
		Pass: c.Pass, Block: c.Block, Total: c.Total(), Complete: c.Complete,
		Exception: c.Exception, Occupied: c.Occupied, Entered: c.Entered, Exited: c.Exited, LongLived: c.LongLived,
		RTMs: shown.Millis(c.RT),
	}
	if least, ok := c.MinRT(); ok {
		j.least = shown.Millis(least)
		j.MinRTMs = &j.least
	}
}

// avgRTMillis returns the average response time without rounding to nanoseconds.
func avgRTMillis(c *stat.Counts) float64 {
	if c.Timed() <= 0 {
		return 0
	}
	return shown.Millis(c.RT) / float64(c.Timed())
}
