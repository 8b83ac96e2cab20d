// Package series holds the common part of metrics exporters: the counts of each resource, under
// labels that are bounded in number and length, regardless of the names that callers use.
package series

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Other is the label of all resources beyond the maximum.
const Other = "__other__"

// UsualMost is the default maximum number of resources with their own labels.
const UsualMost = 500

// maxLabel is the maximum length of a label in bytes.
const maxLabel = 128

// Resource holds the counts of a resource since its first call, or of all other resources together.
type Resource struct {
	Label    string
	Totals   stat.Counts
	InFlight int64
	// Percentiles are of the last minute. They are zero for the other resources, and if
	// Config.Percentiles is off.
	Percentiles stat.Percentiles
	// Units has the totals of each unit that a rule counts; see api.Cost.
	Units []core.UnitStats
}

// UnitResults are the counts of a unit, each with its label.
func UnitResults(c core.UnitCounts) [5]struct {
	Result string
	Units  int64
} {
	return [...]struct {
		Result string
		Units  int64
	}{{"reserved", c.Reserved}, {"refunded", c.Refunded}, {"overdrawn", c.Overdrawn}, {"forgiven", c.Forgiven}, {"refused", c.Refused}}
}

// Reader reads the resources of a Guard. It is safe for concurrent use. A resource with a label
// keeps it as long as it exists, and a resource counted as one of the others stays there. So no sum
// decreases because a resource moves or is removed: each reading adds the increments of the others'
// counts to their total.
type Reader struct {
	guard *api.Guard
	most  int

	mu    sync.Mutex
	named map[string]bool    // with their own labels
	rest  map[string]counted // the others' counts already included in other
	other counted
}

// counted is the counts of a resource.
type counted struct {
	calls stat.Counts
	units []core.UnitStats
}

// NewReader returns a reader that gives up to most resources their own labels; 0 means UsualMost.
func NewReader(guard *api.Guard, most int) *Reader {
	if most <= 0 {
		most = UsualMost
	}
	return &Reader{guard: guard, most: most, named: make(map[string]bool), rest: make(map[string]counted)}
}

// Resources returns the resources that calls have asked for, by label, with the other resources last.
func (r *Reader) Resources() []Resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	type found struct {
		name string
		Resource
	}
	var all []found
	seen := make(map[string]bool)
	now := r.guard.Now()
	r.guard.EachResource(func(res *node.ClusterNode) {
		if res.Entered() && !seen[res.Name()] {
			seen[res.Name()] = true
			all = append(all, found{res.Name(), Resource{Label(res.Name()), res.Totals(), res.InFlight(), res.Percentiles(now), r.guard.UnitStats(res.Name())}})
		}
	})
	for name := range r.named {
		if !seen[name] {
			delete(r.named, name)
		}
	}
	for name := range r.rest {
		if !seen[name] {
			delete(r.rest, name)
		}
	}
	slices.SortFunc(all, func(a, b found) int { // the busiest first, which get the labels at the start
		if d := b.Totals.Total() - a.Totals.Total(); d != 0 {
			return int(max(min(d, 1), -1))
		}
		return strings.Compare(a.name, b.name)
	})
	var resources []Resource
	others := Resource{Label: Other}
	for _, f := range all {
		before, among := r.rest[f.name]
		if !among && (r.named[f.name] || len(r.named) < r.most) {
			r.named[f.name] = true
			resources = append(resources, f.Resource)
			continue
		}
		if f.Totals.Entered < before.calls.Entered || f.Totals.Block < before.calls.Block {
			before = counted{} // it was removed and added again
		}
		addDifference(&r.other.calls, &f.Totals, &before.calls)
		for _, u := range f.Units {
			addUnits(unitOf(&r.other.units, u.Unit), &u.Total, unitOf(&before.units, u.Unit))
		}
		r.rest[f.name] = counted{f.Totals, f.Units}
		others.InFlight += f.InFlight
	}
	slices.SortFunc(resources, func(a, b Resource) int { return strings.Compare(a.Label, b.Label) })
	if r.other.calls != (stat.Counts{}) {
		others.Totals, others.Units = r.other.calls, slices.Clone(r.other.units)
		resources = append(resources, others)
	}
	return resources
}

// addDifference adds the growth between two readings of counters to sum. The counters of one reading
// may differ slightly in age.
func addDifference(sum, now, before *stat.Counts) {
	since := func(now, before int64) int64 { return max(now-before, 0) }
	sum.Pass += since(now.Pass, before.Pass)
	sum.Block += since(now.Block, before.Block)
	sum.Exception += since(now.Exception, before.Exception)
	sum.Complete += since(now.Complete, before.Complete)
	sum.Occupied += since(now.Occupied, before.Occupied)
	sum.Entered += since(now.Entered, before.Entered)
	sum.Exited += since(now.Exited, before.Exited)
	sum.LongLived += since(now.LongLived, before.LongLived)
	sum.RT += max(now.RT-before.RT, 0)
}

// addUnits is addDifference for the counts of a unit.
func addUnits(sum, now, before *core.UnitCounts) {
	sum.Reserved += max(now.Reserved-before.Reserved, 0)
	sum.Refunded += max(now.Refunded-before.Refunded, 0)
	sum.Overdrawn += max(now.Overdrawn-before.Overdrawn, 0)
	sum.Forgiven += max(now.Forgiven-before.Forgiven, 0)
	sum.Refused += max(now.Refused-before.Refused, 0)
	sum.Uncosted += max(now.Uncosted-before.Uncosted, 0)
}

// unitOf returns the totals of a unit, which it adds if they are missing.
func unitOf(all *[]core.UnitStats, unit string) *core.UnitCounts {
	i := slices.IndexFunc(*all, func(u core.UnitStats) bool { return u.Unit == unit })
	if i < 0 {
		i = len(*all)
		*all = append(*all, core.UnitStats{Unit: unit})
	}
	return &(*all)[i].Total
}

// LabelOf returns the current label of a resource named by a rule or breaker.
func (r *Reader) LabelOf(resource string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, among := r.rest[resource]; among || !r.named[resource] && len(r.named) >= r.most {
		return Other
	}
	return Label(resource)
}

// Label returns a name as a label: UTF-8, at most 128 bytes. No two names share a label, and no
// name has the label [Other]: a name that is cut, isn't UTF-8 or could be taken for another's label
// ends with a digest of the whole name, long enough to prevent collisions.
func Label(name string) string {
	if len(name) <= maxLabel && utf8.ValidString(name) && name != Other && !endsLikeDigest(name) {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	end := "~" + hex.EncodeToString(digest[:digestBytes])
	label := strings.ToValidUTF8(name, "\uFFFD")
	for len(label) > maxLabel-len(end) {
		_, size := utf8.DecodeLastRuneInString(label)
		label = label[:len(label)-size]
	}
	return label + end
}

const digestBytes = 16

// endsLikeDigest reports whether a name ends like a label with a digest.
func endsLikeDigest(name string) bool {
	at := len(name) - 1 - hex.EncodedLen(digestBytes)
	if at < 0 || name[at] != '~' {
		return false
	}
	return strings.Trim(name[at+1:], "0123456789abcdef") == ""
}

// Threshold is the threshold of a rule.
type Threshold struct {
	Rule, Type, Resource string // as in the rule, as a label
	Value                float64
}

// Thresholds returns the thresholds of the flow, isolation and hotspot rules in force.
func (r *Reader) Thresholds() (all []Threshold) {
	set := r.guard.Rules()
	add := func(kind core.Kind, id, resource string, value float64) {
		all = append(all, Threshold{Label(id), kind.String(), Label(resource), value})
	}
	for i := range set.Flow {
		add(core.KindFlow, set.Flow[i].ID, set.Flow[i].Resource, set.Flow[i].Threshold)
	}
	for i := range set.Isolation {
		add(core.KindIsolation, set.Isolation[i].ID, set.Isolation[i].Resource, float64(set.Isolation[i].Threshold))
	}
	for i := range set.Hotspot {
		add(core.KindHotspot, set.Hotspot[i].ID, set.Hotspot[i].Resource, set.Hotspot[i].Threshold)
	}
	return all
}
