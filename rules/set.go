package rules

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// Set holds the rules of every family, in the order in which they were declared. The zero Set has
// no rules. It may be read concurrently, and this package never changes a Set that it was given.
// Assigning a Set shares its rules; see [Set.Clone].
type Set struct {
	Authority []authority.Rule `yaml:"authority"`
	System    []system.Rule    `yaml:"system"`
	Hotspot   []hotspot.Rule   `yaml:"hotspot"`
	Flow      []flow.Rule      `yaml:"flow"`
	Isolation []isolation.Rule `yaml:"isolation"`
	Adaptive  []adaptive.Rule  `yaml:"adaptive"`
	Breaker   []breaker.Rule   `yaml:"breaker"`
	Upstream  []upstream.Rule  `yaml:"upstream"`
	Outlier   []outlier.Rule   `yaml:"outlier"`
	// Groups and Gateway are for gateways: groups of paths, and limits of routes and groups, which
	// are flow and hotspot rules once they are in force.
	Groups  []gateway.Group `yaml:"groups"`
	Gateway []gateway.Rule  `yaml:"gateway"`
	// Cluster configures where limits are shared, in one item at most.
	Cluster []Cluster `yaml:"cluster"`
}

// coldFactor is the engine's default. Reading needs one to check rules; it isn't written into them.
const coldFactor = 3

// The keys of lists that are not families.
const groupsKey, gatewayKey, clusterKey = "groups", "gateway", "cluster"

// families has one row for each family, in the order of the file's keys, which is also the order of
// compilation. A new family needs a field of Set and a row here.
var families = []family{
	rulesOf[authority.Rule]{
		kind:       core.KindAuthority,
		in:         func(s *Set) *[]authority.Rule { return &s.Authority },
		normalized: authority.Rule.Normalized,
		build:      authority.Compile,
	},
	rulesOf[system.Rule]{
		kind:       core.KindSystem,
		in:         func(s *Set) *[]system.Rule { return &s.System },
		normalized: system.Rule.Normalized,
		build:      system.Compile,
		zero:       func(r system.Rule) bool { return r.Threshold == 0 && r.Metric != system.RT },
		then:       "refuses every inbound call",
	},
	rulesOf[hotspot.Rule]{
		kind:       core.KindHotspot,
		in:         func(s *Set) *[]hotspot.Rule { return &s.Hotspot },
		normalized: hotspot.Rule.Normalized,
		build:      hotspot.Compile,
		zero:       func(r hotspot.Rule) bool { return r.Threshold == 0 },
		then:       "refuses every value without an exception",
	},
	rulesOf[flow.Rule]{
		kind:       core.KindFlow,
		in:         func(s *Set) *[]flow.Rule { return &s.Flow },
		normalized: func(r flow.Rule) (flow.Rule, error) { return r.Normalized(coldFactor) },
		build:      flow.Compile,
		zero:       func(r flow.Rule) bool { return r.Threshold == 0 },
		then:       "refuses every call",
	},
	rulesOf[isolation.Rule]{
		kind:       core.KindIsolation,
		in:         func(s *Set) *[]isolation.Rule { return &s.Isolation },
		normalized: isolation.Rule.Normalized,
		build:      isolation.Compile,
		zero:       func(r isolation.Rule) bool { return r.Threshold == 0 },
		then:       "refuses every call",
		odd:        map[string]string{"maxOverdraft": ": a call's units are held until it exits, and what it used beyond its estimate goes then too, so it needs no bound; remove it"},
	},
	rulesOf[adaptive.Rule]{
		kind:       core.KindAdaptive,
		in:         func(s *Set) *[]adaptive.Rule { return &s.Adaptive },
		normalized: adaptive.Rule.Normalized,
		build:      adaptive.Compile,
	},
	rulesOf[breaker.Rule]{
		kind:       core.KindBreaker,
		in:         func(s *Set) *[]breaker.Rule { return &s.Breaker },
		normalized: breaker.Rule.Normalized,
		build:      breaker.Compile,
		zero:       func(r breaker.Rule) bool { return r.Threshold == 0 },
		then:       "opens at the first bad call",
	},
	rulesOf[upstream.Rule]{
		kind:       core.KindUpstream,
		in:         func(s *Set) *[]upstream.Rule { return &s.Upstream },
		normalized: upstream.Rule.Normalized,
		build:      upstream.Compile,
	},
	rulesOf[outlier.Rule]{
		kind:       core.KindOutlier,
		in:         func(s *Set) *[]outlier.Rule { return &s.Outlier },
		normalized: outlier.Rule.Normalized,
		build:      outlier.Compile,
		zero:       func(r outlier.Rule) bool { return r.Threshold == 0 },
		then:       "ejects an endpoint at its first bad call",
	},
	rulesOf[gateway.Group]{
		list:       groupsKey,
		in:         func(s *Set) *[]gateway.Group { return &s.Groups },
		normalized: gateway.Group.Normalized,
	},
	rulesOf[gateway.Rule]{
		list:       gatewayKey,
		in:         func(s *Set) *[]gateway.Rule { return &s.Gateway },
		normalized: gateway.Rule.Normalized,
		zero:       func(r gateway.Rule) bool { return r.Threshold == 0 },
		then:       "refuses every request that it applies to",
	},
	rulesOf[Cluster]{
		list:       clusterKey,
		single:     true,
		in:         func(s *Set) *[]Cluster { return &s.Cluster },
		normalized: Cluster.Normalized,
	},
}

// Clone returns a deep copy: changing one doesn't change the other.
func (s Set) Clone() Set {
	for _, f := range families {
		f.own(&s)
	}
	return s
}

// Len returns the number of rules of all families, and of groups. Anything outside a list, such as
// Cluster, is not counted.
func (s Set) Len() int {
	n := 0
	for _, f := range families {
		if !f.bare(&s) {
			n += f.count(&s)
		}
	}
	return n
}

// says reports whether the set has any content.
func (s Set) says() bool {
	return slices.ContainsFunc(families, func(f family) bool { return f.count(&s) > 0 })
}

// Compile adds the rules of all families to the next revision of a Guard's rules, which calls it.
// It returns them with defaults filled in, or the first error.
func (s Set) Compile(b *engine.SnapshotBuilder) (Set, error) {
	flows, hotspots := len(s.Flow), len(s.Hotspot)
	if len(s.Groups)+len(s.Gateway) > 0 {
		if err := s.compileGateway(b); err != nil {
			return Set{}, err
		}
	}
	for _, f := range families {
		if err := f.compile(b, &s); err != nil {
			return Set{}, err
		}
	}
	s.Flow, s.Hotspot = s.Flow[:flows:flows], s.Hotspot[:hotspots:hotspots]
	return s, nil
}

// compileGateway adds the rules that the gateways' rules become, after the rules of the families.
func (s *Set) compileGateway(b *engine.SnapshotBuilder) error {
	for _, f := range families {
		if f.key() == groupsKey || f.key() == gatewayKey {
			if err := f.compile(b, s); err != nil {
				return err
			}
		}
	}
	table, err := gateway.NewTable(s.Groups, s.Gateway)
	if err != nil {
		return err
	}
	b.Attach(table)
	flows, hotspots := gateway.Compiled(s.Gateway)
	s.Flow, s.Hotspot = slices.Concat(s.Flow, flows), slices.Concat(s.Hotspot, hotspots)
	return nil
}

// YAML returns the set as a rule file that [Parse] reads back to an equal set. Fields at their zero
// value are left out, and so are families without rules, unless there is no rule at all. It fails
// for rules that no file can express, such as an infinite threshold or an enumeration without a
// name. A set made in Go can be larger than Parse accepts.
func (s Set) YAML() ([]byte, error) {
	var out, some bytes.Buffer
	for _, f := range s.written() {
		for first := 0; first == 0 || first < f.count(&s); first += part {
			list, err := f.encode(&s, first, part)
			if err != nil {
				return nil, err
			}
			some.Reset()
			if err := writeYAML(&some, mapping(textNode(f.key()), list)); err != nil {
				return nil, err
			}
			text := some.Bytes()
			if first > 0 { // the key is there already
				_, text, _ = bytes.Cut(text, []byte("\n"))
			}
			out.Write(text)
		}
	}
	return out.Bytes(), nil
}

// part is the number of rules written at once: while they are written, they take a hundred times
// their size in the file.
const part = 100

func writeYAML(w io.Writer, root *yaml.Node) error {
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return err
	}
	return enc.Close()
}

// MarshalJSON returns the same as [Set.YAML], as JSON.
func (s Set) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range s.written() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, f.key()), ':')
		bare := f.bare(&s)
		if !bare {
			b = append(b, '[')
		}
		for first := 0; first < f.count(&s); first += part {
			list, err := f.encode(&s, first, part)
			if err != nil {
				return nil, err
			}
			if first > 0 {
				b = append(b, ',')
			}
			if bare {
				b, err = appendJSON(b, list)
			} else {
				b, err = appendAll(b, list.Content, ",,")
			}
			if err != nil {
				return nil, err
			}
		}
		if !bare {
			b = append(b, ']')
		}
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads the output of [Set.MarshalJSON], as strictly as [Parse].
func (s *Set) UnmarshalJSON(data []byte) error {
	p, err := ParseWith("", data, ParseOptions{Dialect: Native})
	if err != nil {
		return err
	}
	*s = p.Set
	return nil
}

// written returns the families that have rules. If none has, it returns the first family, whose empty
// list means that there are no rules at all.
func (s Set) written() (fs []family) {
	for _, f := range families {
		if f.count(&s) > 0 {
			fs = append(fs, f)
		}
	}
	if len(fs) == 0 {
		return families[:1]
	}
	return fs
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content}
}
