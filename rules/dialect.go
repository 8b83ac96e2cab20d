package rules

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// dialect is a way to write rules. The same key means different things in
// different dialects (controlBehavior 1 warms up in one and throttles in
// another), so a whole file is read as one dialect or not at all.
type dialect struct {
	name   string
	detect func(root *yaml.Node) *yaml.Node // the node that gives it away, or nil
	decode func(d *decoder, root *yaml.Node) Set
}

// dialects are tried in order.
var dialects = []dialect{
	foreign("alibaba/Sentinel", []string{"count", "grade"}, []string{"limitApp"}, []string{"paramIdx"}, []string{"highestSystemLoad"}),
	foreign("sentinel-golang", []string{"tokenCalculateStrategy"}, []string{"statIntervalInMs"}, []string{"retryTimeoutMs"}, []string{"triggerCount"}),
	native,
}

var native = dialect{
	name:   "native",
	detect: func(root *yaml.Node) *yaml.Node { return root },
	decode: (*decoder).set,
}

func dialectOf(root *yaml.Node) dialect {
	i := slices.IndexFunc(dialects, func(l dialect) bool { return l.detect(root) != nil })
	return dialects[i]
}

// foreign is a dialect that is recognized and refused. Each telltale is a set
// of keys that only a rule of this dialect has together.
func foreign(name string, telltales ...[]string) dialect {
	detect := func(root *yaml.Node) *yaml.Node { return findRule(root, telltales) }
	return dialect{
		name:   name,
		detect: detect,
		decode: func(d *decoder, root *yaml.Node) Set {
			d.add(placeOf(detect(root)), "", "this is a rule file of %s, whose keys mean other things here: write its rules as docs/rules.md says", name)
			return Set{}
		},
	}
}

// findRule returns the first mapping below n that has all keys of one of the
// telltales, or nil. Checking the tree has bounded its depth.
func findRule(n *yaml.Node, telltales [][]string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for _, keys := range telltales {
			if !slices.ContainsFunc(keys, func(key string) bool { return !hasKey(n, key) }) {
				return n
			}
		}
	}
	for _, child := range n.Content {
		if found := findRule(child, telltales); found != nil {
			return found
		}
	}
	return nil
}

func hasKey(mapping *yaml.Node, key string) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}
