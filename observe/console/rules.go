package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
)

// rule is a rule in force, with its counts and its fullness.
type rule struct {
	core.RuleStats
	Rule     json.RawMessage `json:"rule,omitempty"` // as in a rule file
	List     string          `json:"list,omitempty"` // its list in a rule file, if that isn't named like Kind
	Measures []measure       `json:"measures,omitempty"`
	// Full is the largest used share of a limit, over Measures and, in the list of all rules, over
	// the values that a hotspot rule reports. It is absent if there is none.
	Full *float64 `json:"full,omitempty"`
	// StoreAway reports that a cluster shares the limit, and that the store is unreachable.
	StoreAway bool `json:"storeAway,omitempty"`
}

// measure is a rule's measure of one resource.
type measure struct {
	Resource string       `json:"resource"`
	Outcome  core.Outcome `json:"outcome"` // of a call of one unit arriving now
	core.Measure
}

// ruleTexts are the rules in the form of a rule file, by kind and ID. They are made once for each
// revision.
type ruleTexts struct {
	revision uint64
	texts    map[ruleName]json.RawMessage
}

type ruleName struct{ kind, id string }

// of updates the texts.
func (t *ruleTexts) of(g *api.Guard) {
	revision := g.Engine().Rules().Revision
	if t.texts != nil && t.revision == revision {
		return
	}
	*t = ruleTexts{revision: revision, texts: make(map[ruleName]json.RawMessage)}
	lists, err := listsOf(g.Rules())
	if err != nil {
		return // rules are shown without texts
	}
	for kind, list := range lists {
		for _, text := range list {
			var named struct{ ID string }
			if json.Unmarshal(text, &named) == nil {
				t.texts[ruleName{kind, named.ID}] = text
			}
		}
	}
}

// listsOf returns the rules of a set in the form of a rule file, by family. A mapping in a file, such
// as cluster, becomes a list of one element, which a file may have as well.
func listsOf(set api.RuleSet) (map[string][]json.RawMessage, error) {
	text, err := set.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	lists := make(map[string][]json.RawMessage, len(file))
	for key, value := range file {
		if bytes.HasPrefix(value, []byte("{")) {
			lists[key] = []json.RawMessage{value}
			continue
		}
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
		lists[key] = list
	}
	return lists, nil
}

// gatewayList is the list of rules that run as flow or hotspot rules.
const gatewayList = "gateway"

// ruleListLocked returns every rule in force, without measures. The caller holds making.
func (c *console) ruleListLocked() []rule {
	c.rules.of(c.guard)
	figures := c.guard.RuleStats()
	all := make([]rule, len(figures))
	for i, f := range figures {
		all[i] = rule{RuleStats: f, Rule: c.rules.texts[ruleName{f.Kind.String(), f.ID}]}
		if shared, ok := f.Details.(interface{ StoreAway() bool }); ok {
			all[i].StoreAway = shared.StoreAway()
		}
		if text, ok := c.rules.texts[ruleName{gatewayList, f.ID}]; ok && all[i].Rule == nil {
			all[i].Rule, all[i].List = text, gatewayList // no flow or hotspot rule has its ID
		}
	}
	return all
}

// The limits on the search for the fullest values, and on the number of reported values of a rule.
const (
	measuredResources = 1_000
	measuredOrigins   = 8
	toldMeasures      = 5
	mostCosts         = 8 // of a call
)

// measure asks the rules for their measures of one resource: for a call without a caller, and for
// calls of callers that rules name or that have called. The calls cost something in the units that
// were reserved there, so that the rules with these units measure them.
func (c *console) measure(name string, add func(x core.ExplainedRule, origin string)) {
	origins := []string{""}
	if r, ok := c.guard.FindResource(name); ok {
		for origin := range r.Origins().All() {
			if origins = append(origins, origin); len(origins) > measuredOrigins {
				break
			}
		}
	}
	opts := []api.Option{api.Inbound()}
	for _, u := range c.guard.UnitStats(name) {
		if len(opts) <= mostCosts {
			opts = append(opts, api.Cost(u.Unit, 1))
		}
	}
	for _, origin := range origins {
		x, err := c.guard.Explain(api.WithOrigin(context.Background(), origin), name, opts...)
		if err != nil {
			continue // no call can have that name
		}
		for _, r := range x.Rules {
			add(r, origin)
		}
	}
}

// note adds a rule's measure of a resource once, or the one of all resources that it counts together.
// origin is the caller, for rules that distinguish callers.
func (r *rule) note(name string, x core.ExplainedRule, origin string) {
	if r.terms().Together {
		name = r.Resource
	}
	for _, m := range x.Measures {
		m.For = cmp.Or(m.For, origin)
		if !slices.ContainsFunc(r.Measures, func(o measure) bool { return o.Resource == name && o.Of == m.Of && o.For == m.For }) {
			r.Measures = append(r.Measures, measure{name, x.Outcome, m})
		}
	}
}

// fill sorts the measures, the fullest first, and returns the fullness of the first.
func (r *rule) fill() {
	share := func(m measure) float64 {
		full, known := m.Full()
		if !known {
			return -1
		}
		return full
	}
	slices.SortStableFunc(r.Measures, func(a, b measure) int { return cmp.Compare(share(b), share(a)) })
	r.Measures = r.Measures[:min(len(r.Measures), toldMeasures)]
	if len(r.Measures) > 0 {
		r.Full = full(r.Measures[0].Measure)
	}
}

// fillByValue is like fill, but includes the values that the rule reports, since a call without a
// value measures none of them.
func (r *rule) fillByValue() {
	r.fill()
	if values, ok := r.Details.(interface{ Measures() []core.Measure }); ok {
		for _, m := range values.Measures() {
			if full, known := m.Full(); known && (r.Full == nil || full > *r.Full) {
				r.Full = &full
			}
		}
	}
}

// full returns the used share of the limit, or nil if it is unknown.
func full(m core.Measure) *float64 {
	if share, known := m.Full(); known {
		return &share
	}
	return nil
}

// terms are fields common to rules of several families: the calls that a rule limits, and the limit.
type terms struct {
	Origin, Relation string
	Threshold        float64
	Interval, Unit   string
	Together         bool
}

func (r *rule) terms() (t terms) {
	_ = json.Unmarshal(r.Rule, &t) // missing fields are ""
	return t
}

// ofAll reports whether the rule applies to all callers together.
func (t terms) ofAll() bool { return t.Origin == "" || t.Origin == "default" }

// rulesOf returns the rules that apply to a resource, in the order of evaluation.
func (c *console) rulesOf(name string, all []rule) []rule {
	found := []rule{}
	c.measure(name, func(x core.ExplainedRule, origin string) {
		at := slices.IndexFunc(found, func(r rule) bool { return r.Kind == x.Kind && r.ID == x.ID })
		if at < 0 {
			i := slices.IndexFunc(all, func(r rule) bool { return r.Kind == x.Kind && r.ID == x.ID })
			if i < 0 {
				return // a custom slot
			}
			at, found = len(found), append(found, all[i])
		}
		if found[at].terms().ofAll() {
			origin = ""
		}
		found[at].note(name, x, origin)
	})
	for i := range found {
		found[i].fill()
	}
	return found
}

// limitOf returns the calls per second that the strictest rate rule for all callers of the resource
// admits.
func limitOf(rules []rule) *float64 {
	var least *float64
	for i := range rules {
		r := &rules[i]
		t := r.terms()
		interval, err := time.ParseDuration(t.Interval)
		if r.Mode != spec.Enforce || t.Unit != "" || t.Together || !t.ofAll() || t.Relation != "" && t.Relation != "direct" || err != nil || interval <= 0 {
			continue
		}
		for _, m := range r.Measures {
			limit := t.Threshold
			switch {
			case m.For != "": // one of many
				continue
			case m.Of == "units in "+interval.String(): // the current one, if it changes
				limit = m.Limit
			case m.Of == "wait for a turn" || m.Of == "tokens taken":
			default:
				continue
			}
			if limit /= interval.Seconds(); least == nil || limit < *least {
				least = &limit
			}
		}
	}
	return least
}

type rulesReply struct {
	At       time.Time      `json:"at"`
	Revision uint64         `json:"revision"`
	Hash     string         `json:"hash,omitempty"`
	Writable bool           `json:"writable"`
	Sources  []sourceStatus `json:"sources"`
	Rules    []rule         `json:"rules"`
}

// sourceStatus is the state of a source of the rules.
type sourceStatus struct {
	Source      string    `json:"source"`
	OK          bool      `json:"ok"`
	Watching    bool      `json:"watching"`
	Rules       int       `json:"rules"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	LastFailure time.Time `json:"lastFailure,omitzero"`
	LastError   string    `json:"lastError,omitempty"`
	Confirmed   time.Time `json:"confirmed,omitzero"` // when it was last seen unchanged
	Cached      time.Time `json:"cached,omitzero"`    // when the cache with its rules was written
}

// serveRules lists the rules in force and their fullness.
func (c *console) serveRules(w http.ResponseWriter, _ *http.Request) error {
	return c.reply(w, func() (any, error) { return c.ruleReply(), nil })
}

func (c *console) ruleReply() rulesReply {
	c.making.Lock()
	defer c.making.Unlock()
	status := c.guard.Status()
	answer := rulesReply{
		At: c.reader().at(), Revision: status.Number, Hash: status.Hash, Writable: c.config.WriteRules,
		Sources: []sourceStatus{}, Rules: c.ruleListLocked(),
	}
	for _, s := range status.Sources {
		one := sourceStatus{
			Source: s.Source, OK: s.OK, Watching: s.Watching, Rules: s.Rules,
			LastSuccess: s.LastSuccess, LastFailure: s.LastFailure, Confirmed: s.Confirmed, Cached: s.Cached,
		}
		if s.LastError != nil {
			one.LastError = s.LastError.Error()
		}
		answer.Sources = append(answer.Sources, one)
	}
	index := make(map[ruleName]*rule, len(answer.Rules))
	ofAll := make(map[*rule]bool)
	var names []string // names in rules first, then others while there is room
	for i := range answer.Rules {
		r := &answer.Rules[i]
		index[ruleName{r.Kind.String(), r.ID}] = r
		ofAll[r] = r.terms().ofAll()
		if _, ok := c.guard.FindResource(r.Resource); ok {
			names = append(names, r.Resource)
		}
	}
	c.each(func(r *node.ClusterNode, overflow bool) {
		if !overflow && len(names) < 2*measuredResources {
			names = append(names, r.Name())
		}
	})
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] || name == node.OverflowName {
			continue
		}
		if seen[name] = true; len(seen) > measuredResources {
			break
		}
		c.measure(name, func(x core.ExplainedRule, origin string) {
			if r := index[ruleName{x.Kind.String(), x.ID}]; r != nil && r.Mode != spec.Off {
				if ofAll[r] {
					origin = ""
				}
				r.note(name, x, origin)
			}
		})
	}
	for i := range answer.Rules {
		answer.Rules[i].fillByValue()
	}
	return answer
}

// hotValue is a frequent value that a rule limits by itself.
type hotValue struct {
	Rule     string       `json:"rule"`
	Value    string       `json:"value"`
	Passed   int64        `json:"passed"`
	Refused  int64        `json:"refused"`
	InFlight int64        `json:"inFlight"`
	Measure  core.Measure `json:"measure"`
	Full     *float64     `json:"full,omitempty"` // the used share of its limit, if known here
}

// hotValuesOf returns the hot values of a rule at a resource, from the details of its family.
func hotValuesOf(r rule, resource string) (all []hotValue) {
	text, err := json.Marshal(r.Details)
	var details struct {
		Top []struct {
			Resource string
			hotValue
		}
	}
	if err != nil || json.Unmarshal(text, &details) != nil {
		return nil
	}
	for _, v := range details.Top {
		if v.Resource == asJSON(resource) {
			v.Rule, v.Full = r.ID, full(v.Measure)
			all = append(all, v.hotValue)
		}
	}
	return all
}

type breakerStatus = breaker.Status
