package sentinel

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/system"
)

// JavaWriter writes the rules of a family as Java has them, for those that ask a running
// program for its rules.
//
// A rule is written only if Java's rule, read again, is the same rule but for what Java can't say
// and doesn't change whom it refuses beyond that: its id, how its window is divided, how many probes
// a breaker sends. A rule that says more than Java can is not written at all. So what is shown is
// true, and whoever sends it back unchanged has changed nothing, see [JavaWriter.Push].
type JavaWriter[R spec.Rule[R]] struct {
	normalized func(R) (R, error)
	// said is the rule as Java says it, as far as it can, and read is what that means here.
	said func(R) any
	read func(java any) ([]R, []Warning, error)
	// keep is new with what Java can't say as old has it.
	keep func(new, old R) R
}

// javaRule is what the writers need of a rule of Java's.
type javaRule[R any] interface {
	Check() error
	Native() ([]R, []Warning, error)
}

func javaWriter[J javaRule[R], R spec.Rule[R]](normalized func(R) (R, error), said func(R) J, keep func(new, old R) R) JavaWriter[R] {
	return JavaWriter[R]{
		normalized: normalized,
		said:       func(r R) any { return said(r) },
		read: func(java any) ([]R, []Warning, error) {
			j := java.(J)
			if err := j.Check(); err != nil {
				return nil, nil, err
			}
			return j.Native()
		},
		keep: keep,
	}
}

// The writers of all kinds of rules that the commands getRules and getParamFlowRules tell.
var (
	JavaFlows       = javaWriter(func(r flow.Rule) (flow.Rule, error) { return r.Normalized(JavaColdFactor) }, saidFlow, keepFlow)
	JavaBreakers    = javaWriter(breaker.Rule.Normalized, saidBreaker, keepBreaker)
	JavaHotspots    = javaWriter(hotspot.Rule.Normalized, saidHotspot, keepHotspot)
	JavaSystems     = javaWriter(system.Rule.Normalized, saidSystem, keepSystem)
	JavaAuthorities = javaWriter(authority.Rule.Normalized, saidAuthority, keepAuthority)
)

// Write returns the rule as a JSON object; false if Java has no such rule.
func (w JavaWriter[R]) Write(r R) (object string, ok bool) {
	full, err := w.normalized(r)
	if err != nil || full.Info().Default() { // to Java "*" is a name
		return "", false
	}
	said := w.said(full)
	read, _, err := w.read(said)
	if err != nil || len(read) != 1 {
		return "", false
	}
	again, err := w.normalized(w.keep(read[0], full))
	if err != nil || !again.Equal(full) {
		return "", false
	}
	return javaObject(said), true
}

// WriteAll returns those of the rules that Java has too, as a JSON array.
func (w JavaWriter[R]) WriteAll(rules []R) string {
	all := []string{}
	for _, r := range rules {
		if object, ok := w.Write(r); ok {
			all = append(all, object)
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// Push returns what becomes of the rules mine when somebody who was shown them, and others, sends
// back a list. What comes back as it was shown is the rule that it was. What was changed keeps what
// Java can't say, and its id. What was not shown stays, what doesn't come back is removed, and the
// rest is new. mine and others have their defaults and ids written out.
//
// The others can't be changed. The first one that is missing, or is not what it was, is returned:
// there is no push then.
func (w JavaWriter[R]) Push(mine, others, pushed []R) (rules []R, refused *R) {
	came := make(map[string][]int) // by how Java says it: places in pushed
	for i, p := range pushed {
		object, ok := w.Write(p)
		if !ok { // which reads otherwise than it is written, as a breaker that never opens
			object = strconv.Itoa(i)
		}
		came[object] = append(came[object], i)
	}
	taken := make([]bool, len(pushed))
	claim := func(object string) bool {
		at := came[object]
		if len(at) == 0 {
			return false
		}
		taken[at[0]], came[object] = true, at[1:]
		return true
	}
	for i := range others {
		if object, shown := w.Write(others[i]); shown && !claim(object) {
			return nil, &others[i]
		}
	}
	var changed []int // places in rules, of those that may have been changed
	gone := make(map[int]bool)
	for _, m := range mine {
		if object, shown := w.Write(m); shown && !claim(object) {
			changed = append(changed, len(rules))
			gone[len(rules)] = true
		}
		rules = append(rules, m)
	}
	for i, p := range pushed {
		if taken[i] {
			continue
		}
		full, err := w.normalized(p)
		j := slices.IndexFunc(changed, func(j int) bool { return gone[j] && err == nil && rules[j].Like() == full.Like() })
		if j < 0 {
			rules = append(rules, p)
			continue
		}
		at := changed[j]
		gone[at] = false
		if kept := w.keep(full, rules[at]); w.valid(kept) {
			rules[at] = kept
		} else {
			rules[at] = p.WithID(rules[at].Info().ID)
		}
	}
	left := rules[:0:0]
	for i, r := range rules {
		if !gone[i] {
			left = append(left, r)
		}
	}
	return left, nil
}

func (w JavaWriter[R]) valid(r R) bool {
	_, err := w.normalized(r)
	return err == nil
}

// javaObject is a rule of Java's as its JSON has it. It is without an id: to Sentinel's dashboard
// that is a number, and one of its own.
func javaObject(rule any) string {
	var b bytes.Buffer
	v := reflect.ValueOf(rule)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		f := v.Field(i)
		if key == "" || key == "id" || f.Kind() == reflect.Struct || f.Kind() == reflect.Pointer {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(key) + ":")
		if f.Kind() == reflect.Slice {
			b.WriteByte('[')
			for j := range f.Len() {
				if j > 0 {
					b.WriteByte(',')
				}
				b.WriteString(javaObject(f.Index(j).Interface()))
			}
			b.WriteByte(']')
			continue
		}
		text, _ := json.Marshal(f.Interface()) // a scalar, and finite since its rule is valid
		b.Write(text)
	}
	return "{" + b.String() + "}"
}

// place is where a value is in a list of meanings; -1 is no meaning at all, and refused when
// it is read.
func place[E comparable](meanings []E, e E) int { return slices.Index(meanings, e) }

func saidFlow(r flow.Rule) JavaFlow {
	j := JavaFlowUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, r.Origin, r.Match == spec.MatchRegex
	j.Grade, j.Count = place(javaMetrics, r.Metric), r.Threshold
	j.Strategy, j.RefResource = place(javaRelations, r.Relation), r.Ref
	if r.Metric == flow.Concurrency {
		return j
	}
	j.ControlBehavior = place(javaBehaviors, r.Behavior)
	if j.warmsUp() {
		j.WarmUpPeriodSec = int(r.WarmUpPeriod / time.Second)
	}
	if j.Queues() {
		j.MaxQueueingTimeMs = int(r.MaxWait / time.Millisecond)
	}
	return j
}

func keepFlow(new, old flow.Rule) flow.Rule {
	new.ID = old.ID
	if new.Metric == old.Metric && new.Behavior == old.Behavior && old.Buckets > 0 {
		new.Window, new.Buckets = old.Window, old.Buckets
	}
	return new
}

// below is the number above which Java opens for a breaker that opens at a threshold here. Of the
// two that differ by the last bit it is the one that people would write.
func below(threshold float64) float64 {
	least := math.Nextafter(threshold, -1)
	if len(strconv.FormatFloat(least, 'g', -1, 64)) < len(strconv.FormatFloat(threshold, 'g', -1, 64)) {
		return least
	}
	return threshold
}

func saidBreaker(r breaker.Rule) JavaBreaker {
	j := JavaBreakerUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, everyCaller, r.Match == spec.MatchRegex
	j.Grade = place(javaStrategies, r.Strategy)
	j.TimeWindow = int(r.Recovery / time.Second)
	j.MinRequestAmount = r.MinCalls
	j.StatIntervalMs = int(r.Interval / time.Millisecond)
	switch r.Strategy {
	case breaker.SlowRatio:
		j.Count, j.SlowRatioThreshold = float64(r.SlowRT/time.Millisecond), below(r.Threshold)
	case breaker.ErrorRatio:
		j.Count = below(r.Threshold)
		if r.Threshold == 1 { // above which nothing is
			j.Count = math.Nextafter(1, 0)
		}
	case breaker.ErrorCount:
		j.Count = max(0, r.Threshold-1)
	}
	return j
}

func keepBreaker(new, old breaker.Rule) breaker.Rule {
	new.ID, new.Buckets, new.Probes, new.ProbeTimeout = old.ID, old.Buckets, old.Probes, old.ProbeTimeout
	switch {
	case new.Strategy != old.Strategy:
	case new.Strategy == breaker.ErrorCount && old.Threshold == 0 && new.Threshold == 1, // the first one, both
		new.Strategy != breaker.ErrorCount && new.Threshold == math.Nextafter(old.Threshold, 2):
		new.Threshold = old.Threshold
	}
	return new
}

func saidHotspot(r hotspot.Rule) JavaHotspot {
	j := JavaHotspotUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, everyCaller, r.Match == spec.MatchRegex
	j.Grade, j.Count = place(javaHotspotMetrics, r.Metric), r.Threshold
	j.ParamIdx, _ = strconv.Atoi(r.Index.String())
	if r.Metric == hotspot.QPS {
		j.DurationInSec = int(r.Interval / time.Second)
		j.BurstCount = r.Burst
		if r.Behavior == hotspot.Throttle {
			j.ControlBehavior, j.MaxQueueingTimeMs = javaThrottle, int(r.MaxWait/time.Millisecond)
		}
	}
	for _, e := range r.Exceptions {
		value := e.Value.Scalar()
		j.ParamFlowItemList = append(j.ParamFlowItemList, JavaItem{
			Object: Text(javaText(value)), ClassType: javaType(value), Count: int(e.Threshold),
		})
	}
	return j
}

// javaText is a value as an item has it.
func javaText(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	var text Text
	_ = text.SetScalar(value) // takes everything
	return string(text)
}

// javaType is what the dashboard calls the type of a value.
func javaType(value any) string {
	switch v := value.(type) {
	case int64:
		if v == int64(int32(v)) {
			return "int"
		}
		return "long"
	case float64:
		return "double"
	case bool:
		return "boolean"
	}
	return "java.lang.String"
}

func keepHotspot(new, old hotspot.Rule) hotspot.Rule {
	new.ID, new.MaxValues, new.IgnoreEmpty = old.ID, old.MaxValues, old.IgnoreEmpty
	return new
}

func saidSystem(r system.Rule) JavaSystem {
	j := JavaSystemUnset
	switch r.Metric {
	case system.QPS:
		j.QPS = r.Threshold
	case system.Concurrency:
		j.MaxThread = r.Threshold
	case system.RT:
		j.AvgRT = float64(r.MaxRT) / float64(time.Millisecond)
	case system.Load:
		j.HighestSystemLoad = r.Threshold
	case system.CPU:
		j.HighestCPUUsage = r.Threshold
	}
	return j
}

func keepSystem(new, old system.Rule) system.Rule {
	new.ID = old.ID
	if new.Metric == old.Metric {
		new.Buckets, new.Strict, new.Strategy = old.Buckets, old.Strict, old.Strategy
	}
	return new
}

func saidAuthority(r authority.Rule) JavaAuthority {
	return JavaAuthority{
		Resource: r.Resource, Regex: r.Match == spec.MatchRegex,
		LimitApp: strings.Join(r.Origins, ","), Strategy: place(javaLists, r.List),
	}
}

func keepAuthority(new, old authority.Rule) authority.Rule {
	new.ID = old.ID
	return new
}
