package rules

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// wrapperKey is the key of the rule in each object of a dashboard, next to the dashboard's own data:
// {"id": 5, "app": "shop", "rule": {...}}.
const wrapperKey = "rule"

// unwrap replaces a dashboard's objects with the rules in them.
func (d *decoder) unwrap(root *yaml.Node) {
	lists := []*yaml.Node{root}
	if root.Kind == yaml.MappingNode {
		lists = root.Content
	}
	for _, list := range lists {
		if list.Kind != yaml.SequenceNode {
			continue
		}
		for i, item := range list.Content {
			if rule := valueOf(item, wrapperKey); rule != nil && rule.Kind == yaml.MappingNode {
				if d.wrapped == nil {
					d.wrapped = make(map[*yaml.Node]*yaml.Node)
				}
				list.Content[i], d.wrapped[rule] = rule, item
			}
		}
	}
}

// merged returns a wrapped rule with the fields that only the outer object has, such as its id, or
// nil after reporting their errors. path is the path of the wrapper.
func (d *decoder) merged(outer, rule *yaml.Node, path string, fields []field) (all *yaml.Node, its string) {
	its = path + "." + wrapperKey
	whole := *rule
	whole.Content = slices.Clip(whole.Content)
	before := len(d.list)
	for e := range d.entries(outer, path) {
		name := e.key.Value
		switch here := valueOf(rule, d.fieldKey(name)); {
		case name == wrapperKey, slices.Contains(dashboard, name), isNull(e.value), d.isTypeHint(e.key, path):
		case !slices.Contains(keysOf(fields), d.fieldKey(name)):
			d.addUnknown(e.key, path+"."+clip(name), append(keysOf(fields), dashboard...))
		case here == nil || isNull(here) || name == "id" && here.Value == "0":
			whole.Content = append(without(whole.Content, name), e.key, e.value)
		case name != "id" && !sameValue(here, e.value): // the id is the dashboard's number of the object
			d.add(placeOf(keyOf(rule, d.fieldKey(name))), its+"."+clip(name), "is set twice, first at %v, with another value: keep one", placeOf(e.key))
		}
	}
	if len(d.list) > before {
		return nil, its
	}
	return &whole, its
}

// without returns the content of a mapping without a key.
func without(content []*yaml.Node, key string) (left []*yaml.Node) {
	for i := 0; i < len(content); i += 2 {
		if content[i].Value != key {
			left = append(left, content[i], content[i+1])
		}
	}
	return left
}

// keyOf returns the node of a key in a mapping.
func keyOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i]
		}
	}
	return mapping
}

// sameValue reports whether two values are equal, numbers in any form.
func sameValue(a, b *yaml.Node) bool {
	if isNumber(a) && isNumber(b) {
		x, _ := strconv.ParseFloat(a.Value, 64)
		y, _ := strconv.ParseFloat(b.Value, 64)
		return x == y
	}
	return a.Kind == b.Kind && a.Value == b.Value && isText(a) == isText(b) && slices.EqualFunc(a.Content, b.Content, sameValue)
}

// typeHint is the key under which a Java serializer writes the class of an object.
const typeHint = "@type"

// isTypeHint reports whether a key is one that Sentinel ignores, and warns of the first in a file.
func (d *decoder) isTypeHint(key *yaml.Node, path string) bool {
	if key.Value != typeHint || d.speaks != SentinelJava {
		return false
	}
	if !d.typed {
		d.typed = true
		if path != "" {
			path += "."
		}
		d.warn("serializer", placeOf(key), path+typeHint, "was written by a serializer, and Sentinel ignores it: remove it here and elsewhere in the file")
	}
	return true
}

func isEmptyList(n *yaml.Node) bool { return n.Kind == yaml.SequenceNode && len(n.Content) == 0 }

// hasEmptyLists reports whether a file has lists, and all of them are empty: then it means the same
// in every dialect that knows their names.
func hasEmptyLists(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	for i := 1; i < len(root.Content); i += 2 {
		if !isEmptyList(root.Content[i]) {
			return false
		}
	}
	return true
}
