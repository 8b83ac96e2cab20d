package inspect

import (
	"encoding/json"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// MarshalJSON returns the tree as one object:
//
//	at         the time, RFC 3339
//	waiting    calls that sleep until a rule lets them run
//	failures   panics of slots; the calls went on without
//	leaked     calls reported because they did not exit in time
//	caps       resources, contexts, calls and origins, each with
//	           used, cap and overflows
//	root       the tree; a node has children
//	resources  the resources that calls asked for; a node has origins
//	inbound    the inbound calls of all resources
//	rules      what each rule has done since it was loaded: kind, id, resource,
//	           mode, refused and, for a shadow rule, rehearsed: the calls it
//	           would have refused. One whose threshold moves has threshold: what
//	           holds now, and memory: the use that it goes by, a share or
//	           bytes, absent if that can't be read. One that tells values apart
//	           has values: how many it knows; inFlight: their units; overflowed:
//	           how often one found no place; and top: up to ten that are asked
//	           for most, each with resource, value, passed and refused calls
//	           and, where the rule limits those, units inFlight. One that learns
//	           its limit has limits, each with resource, limit, inForce: where
//	           it is just now, 0 if the rule limits nobody; floorRtMs and
//	           limitRtMs: how long calls take below the limit and above it; and
//	           throughputPerSecond: units completed. One of breakers has states:
//	           how many breakers are in each, of an outlier rule those of ejected
//	           callees, of as many as values says
//
// Nodes are as [Node.MarshalJSON] says. Keys are never renamed or removed, but
// others may come. Every number is finite.
func (t Tree) MarshalJSON() ([]byte, error) {
	return json.Marshal(treeJSON{
		At:        t.At,
		Waiting:   t.Waiting,
		Failures:  t.Failures,
		Leaked:    t.Leaked,
		Caps:      capsJSON{usageJSON(t.Caps.Resources), usageJSON(t.Caps.Contexts), usageJSON(t.Caps.Calls), usageJSON(t.Caps.Origins)},
		Root:      newNodeJSON(&t.Root),
		Resources: newNodesJSON(t.Resources),
		Inbound:   newNodeJSON(&t.Inbound),
		Rules:     newRulesJSON(t.Rules),
	})
}

// MarshalJSON returns the node with all below it:
//
//	name, kind            kind is root, entrance, call, resource, origin or inbound
//	overflow              true if it stands for all names beyond a cap, else absent
//	passPerSecond         units admitted, over the second window;
//	                      also block, total, complete, exception and occupied
//	avgRtMs, minRtMs      response times over the second window; minRtMs is absent
//	                      and avgRtMs 0 if no call completed
//	maxCompletePerBucket  units completed in the best bucket of the second window
//	maxCompletePerSecond  the rate if every bucket were like it
//	inFlight              calls
//	waiting               units borrowed from buckets that have not begun, or in line for permits
//	second, lastSecond, minute, lifetime
//	                      counts of the second window, the last whole second, the
//	                      last 60 seconds, and since the node was made
//	children              of root, entrance and call, absent if there are none
//	origins               of a resource, absent if there are none
//	breakers              of a resource and of its callees that are ejected, absent if
//	                      there are none: rule, callee, mode, state, since (absent if
//	                      it never was another), retryAt (when a call is let in next,
//	                      absent if that can't be told), calls and bad of the last
//	                      interval, and the probes that are out
//
// Counts are units: pass, block, total, complete, exception and occupied; calls:
// entered and exited; and rtMs, the response times of the calls that exited added
// up, with minRtMs, the least of them, absent if none did. A name that is not
// UTF-8 has U+FFFD where it isn't. The history of the last minute is left out, for
// it would be most of the text.
func (n Node) MarshalJSON() ([]byte, error) { return json.Marshal(newNodeJSON(&n)) }

type treeJSON struct {
	At        time.Time  `json:"at"`
	Waiting   int64      `json:"waiting"`
	Failures  int64      `json:"failures"`
	Leaked    int64      `json:"leaked"`
	Caps      capsJSON   `json:"caps"`
	Root      nodeJSON   `json:"root"`
	Resources []nodeJSON `json:"resources"`
	Inbound   nodeJSON   `json:"inbound"`
	Rules     []ruleJSON `json:"rules"`
}

type ruleJSON struct {
	Kind      string    `json:"kind"`
	ID        string    `json:"id"`
	Resource  string    `json:"resource"`
	Mode      core.Mode `json:"mode"`
	Refused   int64     `json:"refused"`
	Rehearsed int64     `json:"rehearsed"`

	Threshold float64 `json:"threshold,omitempty"`
	Memory    float64 `json:"memory,omitempty"`

	Values     int         `json:"values,omitempty"`
	InFlight   int64       `json:"inFlight,omitempty"`
	Overflowed int64       `json:"overflowed,omitempty"`
	Top        []valueJSON `json:"top,omitempty"`
	Limits     []limitJSON `json:"limits,omitempty"`

	States map[string]int `json:"states,omitempty"`
}

type limitJSON struct {
	Resource            string  `json:"resource"`
	Limit               int64   `json:"limit"`
	InForce             int64   `json:"inForce"`
	FloorRTMs           float64 `json:"floorRtMs"`
	LimitRTMs           float64 `json:"limitRtMs"`
	ThroughputPerSecond float64 `json:"throughputPerSecond"`
}

type valueJSON struct {
	Resource string `json:"resource"`
	Value    string `json:"value"`
	Passed   int64  `json:"passed"`
	Refused  int64  `json:"refused"`
	InFlight int64  `json:"inFlight"`
}

func newRulesJSON(figures []core.RuleFigures) []ruleJSON {
	rules := make([]ruleJSON, len(figures))
	for i, f := range figures {
		rules[i] = ruleJSON{
			Kind: f.Kind.String(), ID: f.ID, Resource: f.Resource, Mode: f.Mode, Refused: f.Refused, Rehearsed: f.Rehearsed,
			Threshold: f.Threshold, Memory: max(0, f.Memory), Values: f.Values, InFlight: f.InFlight, Overflowed: f.Overflowed,
		}
		for _, v := range f.Top {
			rules[i].Top = append(rules[i].Top, valueJSON(v))
		}
		for _, b := range f.Breakers {
			if rules[i].States == nil {
				rules[i].States = make(map[string]int)
			}
			rules[i].States[b.State]++
		}
		for _, l := range f.Limits {
			rules[i].Limits = append(rules[i].Limits, limitJSON{
				l.Resource, l.Limit, l.InForce, millis(l.FloorRT), millis(l.LimitRT), l.Throughput,
			})
		}
	}
	return rules
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

type nodeJSON struct {
	Name     string `json:"name"`
	Kind     Kind   `json:"kind"`
	Overflow bool   `json:"overflow,omitempty"`

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
	InFlight             int64    `json:"inFlight"`
	Waiting              int64    `json:"waiting"`

	Second     countsJSON `json:"second"`
	LastSecond countsJSON `json:"lastSecond"`
	Minute     countsJSON `json:"minute"`
	Lifetime   countsJSON `json:"lifetime"`

	Children []nodeJSON    `json:"children,omitempty"`
	Origins  []nodeJSON    `json:"origins,omitempty"`
	Breakers []breakerJSON `json:"breakers,omitempty"`
}

type breakerJSON struct {
	Rule    string    `json:"rule"`
	Callee  string    `json:"callee,omitempty"`
	Mode    core.Mode `json:"mode"`
	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	Calls   int64     `json:"calls"`
	Bad     int64     `json:"bad"`
	Probes  int       `json:"probes,omitempty"`
}

func newBreakersJSON(figures []core.BreakerFigures) []breakerJSON {
	breakers := make([]breakerJSON, len(figures))
	for i, f := range figures {
		breakers[i] = breakerJSON{
			Rule: f.Rule, Callee: f.Callee, Mode: f.Mode, State: f.State, Since: utc(f.Since), RetryAt: utc(f.RetryAt),
			Calls: f.Calls, Bad: f.Bad, Probes: f.Probes,
		}
	}
	return breakers
}

// utc keeps the zero time, which has no place, as it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
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
	RTMs      float64  `json:"rtMs"`
	MinRTMs   *float64 `json:"minRtMs,omitempty"`
}

func newNodesJSON(nodes []Node) []nodeJSON {
	all := make([]nodeJSON, len(nodes)) // never nil, which would be null
	for i := range nodes {
		all[i] = newNodeJSON(&nodes[i])
	}
	return all
}

func newNodeJSON(n *Node) nodeJSON {
	rates := n.Rates()
	return nodeJSON{
		Name:     n.Name,
		Kind:     n.Kind,
		Overflow: n.Overflow,

		PassPerSecond:      rates.Pass,
		BlockPerSecond:     rates.Block,
		TotalPerSecond:     n.TotalRate(),
		CompletePerSecond:  rates.Complete,
		ExceptionPerSecond: rates.Exception,
		OccupiedPerSecond:  rates.Occupied,

		AvgRTMs:              avgRTMillis(&n.Second),
		MinRTMs:              minRTMillis(&n.Second),
		MaxCompletePerBucket: n.MaxComplete(),
		MaxCompletePerSecond: n.MaxCompleteRate(),
		InFlight:             n.InFlight,
		Waiting:              n.Waiting,

		Second:     newCountsJSON(&n.Second),
		LastSecond: newCountsJSON(&n.LastSecond),
		Minute:     newCountsJSON(&n.Minute),
		Lifetime:   newCountsJSON(&n.Lifetime),

		Children: newNodesJSON(n.Children),
		Origins:  newNodesJSON(n.Origins),
		Breakers: newBreakersJSON(n.Breakers),
	}
}

func newCountsJSON(c *stat.Counts) countsJSON {
	return countsJSON{
		Pass: c.Pass, Block: c.Block, Total: c.Total(), Complete: c.Complete,
		Exception: c.Exception, Occupied: c.Occupied, Entered: c.Entered, Exited: c.Exited,
		RTMs: millis(c.RT), MinRTMs: minRTMillis(c),
	}
}

// avgRTMillis is the average response time without rounding to nanoseconds.
func avgRTMillis(c *stat.Counts) float64 {
	if c.Exited <= 0 {
		return 0
	}
	return millis(c.RT) / float64(c.Exited)
}

func minRTMillis(c *stat.Counts) *float64 {
	least, ok := c.MinRT()
	if !ok {
		return nil
	}
	ms := millis(least)
	return &ms
}
