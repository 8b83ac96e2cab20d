package console

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// figures are the counts of a second or of a minute.
type figures struct {
	Pass      int64    `json:"pass"`
	Block     int64    `json:"block"`
	Complete  int64    `json:"complete"`
	Exception int64    `json:"exception"`
	Occupied  int64    `json:"occupied"`
	AvgRTMs   float64  `json:"avgRtMs"`
	MinRTMs   *float64 `json:"minRtMs,omitempty"`

	// Percentiles of a resource in the last minute; absent unless api.Config.Percentiles is on and
	// calls completed.
	P50Ms *float64 `json:"p50Ms,omitempty"`
	P95Ms *float64 `json:"p95Ms,omitempty"`
	P99Ms *float64 `json:"p99Ms,omitempty"`
}

func figuresOf(c *stat.Counts) figures {
	f := figures{Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception, Occupied: c.Occupied, AvgRTMs: avgRT(c)}
	if least, ok := c.MinRT(); ok {
		ms := shown.Millis(least)
		f.MinRTMs = &ms
	}
	return f
}

// avgRT returns the mean response time in milliseconds, without rounding to nanoseconds.
func avgRT(c *stat.Counts) float64 {
	if c.Timed() <= 0 {
		return 0
	}
	return math.Round(shown.Millis(c.RT)/float64(c.Timed())*1e6) / 1e6
}

// minute is the number of seconds in a history. The last second is current, the others are complete.
const minute = 60

// history is the last minute of a node, second by second.
type history struct {
	Pass      [minute]int64   `json:"pass"`
	Block     [minute]int64   `json:"block"`
	Complete  [minute]int64   `json:"complete"`
	Exception [minute]int64   `json:"exception"`
	RTMs      [minute]float64 `json:"rtMs"`

	lastSecond, minute stat.Counts
}

// reader reads nodes as of one time.
type reader struct {
	now     int64
	end     int64 // beginning of the current second
	scratch []stat.Bucket[stat.Counts]
}

func (c *console) reader() *reader {
	now := c.guard.Now()
	return &reader{now: now, end: floorSecond(now)}
}

func floorSecond(now int64) int64 {
	second := int64(time.Second)
	return now - ((now%second)+second)%second
}

func (r *reader) at() time.Time  { return time.Unix(0, r.now).UTC() }
func (r *reader) endUnix() int64 { return r.end / int64(time.Second) }

func (r *reader) history(n *node.StatisticNode) *history {
	h := new(history)
	r.scratch = n.AppendHistory(r.scratch[:0], r.now)
	for i := range r.scratch {
		second := &r.scratch[i]
		h.minute.Add(&second.Value)
		age := (r.end - second.Start) / int64(time.Second)
		if age < 0 || age >= minute {
			continue
		}
		if age == 1 {
			h.lastSecond = second.Value
		}
		at := minute - 1 - age
		h.Pass[at], h.Block[at] = second.Value.Pass, second.Value.Block
		h.Complete[at], h.Exception[at] = second.Value.Complete, second.Value.Exception
		h.RTMs[at] = avgRT(&second.Value)
	}
	return h
}

// minute returns the last minute of a resource, with percentiles if they are on.
func (r *reader) minute(of *node.ClusterNode, h *history) figures {
	f := figuresOf(&h.minute)
	if p := of.Percentiles(r.now); p.Count > 0 {
		ms := [...]float64{shown.Millis(p.P50), shown.Millis(p.P95), shown.Millis(p.P99)}
		f.P50Ms, f.P95Ms, f.P99Ms = &ms[0], &ms[1], &ms[2]
	}
	return f
}

// each calls f for every resource that a call has asked for.
func (c *console) each(f func(r *node.ClusterNode, overflow bool)) {
	overflow, _ := c.guard.FindResource(node.OverflowName)
	c.guard.EachResource(func(r *node.ClusterNode) {
		if r.Entered() {
			f(r, r == overflow)
		}
	})
}

// brief is a resource in the list of all resources.
type brief struct {
	Name       string       `json:"name"`
	Escaped    string       `json:"escaped,omitempty"` // see shown.Escaped
	Overflow   bool         `json:"overflow,omitempty"`
	InFlight   int64        `json:"inFlight"`
	Waiting    int64        `json:"waiting"`
	LastSecond figures      `json:"lastSecond"`
	Minute     figures      `json:"minute"`
	Marks      []string     `json:"marks,omitempty"`
	History    briefHistory `json:"history"`
}

type briefHistory struct {
	Pass  [minute]int64   `json:"pass"`
	Block [minute]int64   `json:"block"`
	RTMs  [minute]float64 `json:"rtMs"`
}

// The limits on the number of resources in a list.
const (
	usualLimit = 1_000
	maxLimit   = 10_000
)

// serveResources lists resources, by traffic.
func (c *console) serveResources(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := wholeNumber(q, "limit", usualLimit)
	if err != nil {
		return err
	}
	offset, err := wholeNumber(q, "offset", 0)
	if err != nil {
		return err
	}
	return c.reply(w, func() (any, error) {
		return c.resources(strings.ToLower(q.Get("q")), min(limit, maxLimit), offset), nil
	})
}

type resourcesReply struct {
	At          time.Time `json:"at"`
	EndUnix     int64     `json:"endUnix"`
	Total       int       `json:"total"`
	Percentiles bool      `json:"percentiles"` // whether they are on
	Resources   []brief   `json:"resources"`
	Alerts      []alert   `json:"alerts,omitempty"`
}

func (c *console) resources(query string, limit, offset int) resourcesReply {
	c.making.Lock()
	defer c.making.Unlock()
	read := c.reader()
	type ranked struct {
		*node.ClusterNode
		overflow bool
		traffic  int64
	}
	var all []ranked
	c.each(func(r *node.ClusterNode, overflow bool) {
		if query == "" || strings.Contains(strings.ToLower(r.Name()), query) {
			read.scratch = r.AppendHistory(read.scratch[:0], read.now)
			one := ranked{r, overflow, 0}
			for i := range read.scratch {
				one.traffic += read.scratch[i].Value.Total()
			}
			all = append(all, one)
		}
	})
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.traffic, a.traffic), strings.Compare(a.Name(), b.Name()))
	})
	answer := resourcesReply{At: read.at(), EndUnix: read.endUnix(), Total: len(all), Resources: []brief{}, Percentiles: c.guard.Config().Percentiles, Alerts: c.alerts(time.Now())}
	all = all[min(offset, len(all)):]
	marks := c.marks()
	for _, r := range all[:min(limit, len(all))] {
		h := read.history(&r.StatisticNode)
		answer.Resources = append(answer.Resources, brief{
			Name: r.Name(), Escaped: shown.Escaped(r.Name()), Overflow: r.overflow, InFlight: r.InFlight(), Waiting: r.Waiting(read.now),
			LastSecond: figuresOf(&h.lastSecond), Minute: read.minute(r.ClusterNode, h), Marks: marks[r.Name()],
			History: briefHistory{h.Pass, h.Block, h.RTMs},
		})
	}
	return answer
}

// marks returns the rules' reports to show next to the calls of resources, such as an open breaker.
func (c *console) marks() map[string][]string {
	marks := make(map[string][]string)
	for _, r := range c.guard.RuleStats() {
		if r.Details == nil {
			continue
		}
		for _, d := range r.Details.Resources() {
			if text, _ := d.Mark(); text != "" && !slices.Contains(marks[d.About()], text) {
				marks[d.About()] = append(marks[d.About()], text)
			}
		}
	}
	return marks
}

// resource is everything about one resource.
type resource struct {
	At         time.Time `json:"at"`
	EndUnix    int64     `json:"endUnix"`
	Name       string    `json:"name"`
	Escaped    string    `json:"escaped,omitempty"` // see shown.Escaped
	Overflow   bool      `json:"overflow,omitempty"`
	InFlight   int64     `json:"inFlight"`
	Waiting    int64     `json:"waiting"`
	LastSecond figures   `json:"lastSecond"`
	Minute     figures   `json:"minute"`
	Lifetime   figures   `json:"lifetime"`
	History    *history  `json:"history"`
	// Limit is the number of calls per second that the strictest flow rule for all callers admits;
	// absent without such a rule.
	Limit     *float64               `json:"limit,omitempty"`
	Units     []core.UnitStats       `json:"units,omitempty"` // see api.Guard.UnitStats
	Origins   []origin               `json:"origins"`
	HotValues []hotValue             `json:"hotValues"`
	Rules     []rule                 `json:"rules"`
	Breakers  []breakerStatus        `json:"breakers"`
	Changes   []breakerChange        `json:"changes"`
	Refusals  []refusal              `json:"refusals"`
	Details   []core.ResourceDetails `json:"details,omitempty"`
}

type origin struct {
	Name       string  `json:"name"`
	Overflow   bool    `json:"overflow,omitempty"`
	InFlight   int64   `json:"inFlight"`
	LastSecond figures `json:"lastSecond"`
	Minute     figures `json:"minute"`
}

// refusal is an entry in the list of recent refusals.
type refusal struct {
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int64     `json:"count"`
	Kind    core.Kind `json:"kind"`
	Rule    string    `json:"rule"`
	Context string    `json:"context"`
	Origin  string    `json:"origin,omitempty"`
	Value   string    `json:"value,omitempty"`
	Reason  string    `json:"reason"`
}

// serveResource shows one resource. Its name is in the path or in the query, since some names can't
// be in a path.
func (c *console) serveResource(w http.ResponseWriter, r *http.Request) error {
	name := cmp.Or(r.PathValue("name"), r.URL.Query().Get("name"))
	return c.reply(w, func() (any, error) { return c.resource(name) })
}

func (c *console) resource(name string) (*resource, error) {
	c.making.Lock()
	defer c.making.Unlock()
	found, ok := c.find(name)
	if !ok {
		return nil, refuse(http.StatusNotFound, "there is no resource %q", shortened(name))
	}
	name = found.Name()
	read := c.reader()
	h, total := read.history(&found.StatisticNode), found.Totals()
	answer := &resource{
		At: read.at(), EndUnix: read.endUnix(), Name: name, Escaped: shown.Escaped(name), Overflow: name == node.OverflowName,
		InFlight: found.InFlight(), Waiting: found.Waiting(read.now),
		LastSecond: figuresOf(&h.lastSecond), Minute: read.minute(found, h), Lifetime: figuresOf(&total), History: h,
		Origins: read.origins(found), HotValues: []hotValue{},
		Breakers: []breakerStatus{}, Changes: c.changes.of(name), Refusals: c.refusals(name), Units: c.guard.UnitStats(name),
	}
	all := c.ruleListLocked()
	answer.Rules = c.rulesOf(name, all)
	answer.Limit = limitOf(answer.Rules)
	for _, r := range all {
		answer.HotValues = append(answer.HotValues, hotValuesOf(r, name)...)
	}
	for _, s := range c.guard.Breakers() {
		if s.Resource == name {
			answer.Breakers = append(answer.Breakers, s)
		}
	}
	return answer, nil
}

// find returns the resource with the given name. A name that isn't UTF-8 may be in its JSON form, if no
// other resource has the same form.
func (c *console) find(name string) (found *node.ClusterNode, ok bool) {
	if found, ok = c.guard.FindResource(name); ok || !strings.ContainsRune(name, utf8.RuneError) {
		return found, ok
	}
	same := 0
	c.each(func(r *node.ClusterNode, _ bool) {
		if !utf8.ValidString(r.Name()) && asJSON(r.Name()) == name {
			found = r
			same++
		}
	})
	return found, same == 1
}

// asJSON returns a name as a reader of its JSON sees it.
func asJSON(name string) string { return string([]rune(name)) }

func (r *reader) origins(of *node.ClusterNode) []origin {
	all := []origin{}
	add := func(name string, overflow bool, n *node.StatisticNode) {
		h := r.history(n)
		all = append(all, origin{name, overflow, n.InFlight(), figuresOf(&h.lastSecond), figuresOf(&h.minute)})
	}
	for name, o := range of.Origins().All() {
		add(name, false, &o.StatisticNode)
	}
	if o := of.OverflowOrigin(); o != nil {
		add(o.Name(), true, &o.StatisticNode)
	}
	slices.SortFunc(all, func(a, b origin) int {
		return cmp.Or(cmp.Compare(b.Minute.Pass+b.Minute.Block, a.Minute.Pass+a.Minute.Block), strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), usualLimit)]
}

func (c *console) refusals(name string) []refusal {
	all := []refusal{}
	for _, r := range c.guard.Refusals(name) {
		one := refusal{
			First: r.First, Last: r.Last, Count: r.Count, Kind: r.Block.Kind, Rule: r.Block.Rule,
			Context: r.Context, Origin: r.Origin, Reason: strings.TrimPrefix(r.Block.Error(), "penstock: "),
		}
		if r.Block.Value != (argument.Value{}) {
			one.Value = r.Block.Value.String()
		}
		all = append(all, one)
	}
	return all
}

// wholeNumber parses a number in a query, with a default.
func wholeNumber(q url.Values, name string, usual int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, refuse(http.StatusBadRequest, "%s is %q: use a whole number from 0", name, shortened(text))
	}
	return n, nil
}

// shortened limits a text that an error repeats.
func shortened(text string) string { return shown.Name(text, 100) }
