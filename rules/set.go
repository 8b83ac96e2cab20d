package rules

import (
	"bytes"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
)

// Set holds the rules of every family, in the order in which they were
// declared. The zero Set has no rules. A Set is a value; two goroutines may
// read one, and nothing in this package changes the slices of a Set it was
// given.
type Set struct {
	Authority []authority.Rule `yaml:"authority"`
	System    []system.Rule    `yaml:"system"`
	Hotspot   []hotspot.Rule   `yaml:"hotspot"`
	Flow      []flow.Rule      `yaml:"flow"`
	Isolation []isolation.Rule `yaml:"isolation"`
	Adaptive  []adaptive.Rule  `yaml:"adaptive"`
	Breaker   []breaker.Rule   `yaml:"breaker"`
	Outlier   []outlier.Rule   `yaml:"outlier"`
}

// coldFactor is the engine's default. Reading a rule needs one to check the
// rule against; it isn't written into the rule.
const coldFactor = 3

// families has one row for each family, in the order of the file's keys. A new
// family is a field of Set and a row here.
var families = []family{
	rulesOf[authority.Rule]{
		name:       "authority",
		in:         func(s *Set) *[]authority.Rule { return &s.Authority },
		normalized: authority.Rule.Normalized,
	},
	rulesOf[system.Rule]{
		name:       "system",
		in:         func(s *Set) *[]system.Rule { return &s.System },
		normalized: system.Rule.Normalized,
	},
	rulesOf[hotspot.Rule]{
		name:       "hotspot",
		in:         func(s *Set) *[]hotspot.Rule { return &s.Hotspot },
		normalized: hotspot.Rule.Normalized,
	},
	rulesOf[flow.Rule]{
		name:       "flow",
		in:         func(s *Set) *[]flow.Rule { return &s.Flow },
		normalized: func(r flow.Rule) (flow.Rule, error) { return r.Normalized(coldFactor) },
	},
	rulesOf[isolation.Rule]{
		name:       "isolation",
		in:         func(s *Set) *[]isolation.Rule { return &s.Isolation },
		normalized: isolation.Rule.Normalized,
	},
	rulesOf[adaptive.Rule]{
		name:       "adaptive",
		in:         func(s *Set) *[]adaptive.Rule { return &s.Adaptive },
		normalized: adaptive.Rule.Normalized,
	},
	rulesOf[breaker.Rule]{
		name:       "breaker",
		in:         func(s *Set) *[]breaker.Rule { return &s.Breaker },
		normalized: breaker.Rule.Normalized,
	},
	rulesOf[outlier.Rule]{
		name:       "outlier",
		in:         func(s *Set) *[]outlier.Rule { return &s.Outlier },
		normalized: outlier.Rule.Normalized,
	},
}

// Len returns the number of rules of all families.
func (s Set) Len() int {
	n := 0
	for _, f := range families {
		n += f.count(&s)
	}
	return n
}

// YAML returns the set as a rule file that [Parse] reads back to an equal set.
// Fields at their zero value are left out, and so are families without rules, unless
// there is no rule at all. It fails for rules that no file can
// express, such as an infinite threshold or an enumeration without a name. A set
// made in Go can be larger than what Parse reads.
func (s Set) YAML() ([]byte, error) {
	root, err := s.tree()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// MarshalJSON returns the same as [Set.YAML], as JSON.
func (s Set) MarshalJSON() ([]byte, error) {
	root, err := s.tree()
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, root)
}

// UnmarshalJSON reads what [Set.MarshalJSON] writes, as strictly as [Parse].
func (s *Set) UnmarshalJSON(data []byte) error {
	set, err := Parse("", data)
	if err != nil {
		return err
	}
	*s = set
	return nil
}

func (s Set) tree() (*yaml.Node, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i, f := range families {
		if f.count(&s) == 0 && (i > 0 || s.Len() > 0) {
			continue // one empty list says that there are no rules at all
		}
		list, err := f.encode(&s)
		if err != nil {
			return nil, err
		}
		root.Content = append(root.Content, textNode(f.key()), list)
	}
	return root, nil
}
