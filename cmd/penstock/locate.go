package main

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// findID returns where the id of a rule of a family stands, and its field; zero if it can't be told,
// as in a file whose rules get their ids otherwise.
func findID(data []byte, family, id string) (line, column int, path string) {
	for list, rules := range listsOf(data) {
		if list != family {
			continue
		}
		for i, rule := range rules.Content {
			if v := valueOf(rule, "id"); v != nil && v.Value == id {
				return v.Line, v.Column, fmt.Sprintf("%s[%d].id", list, i)
			}
		}
	}
	return 0, 0, ""
}

// listsOf yields the lists of rules of a file, by name.
func listsOf(data []byte) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		var doc yaml.Node
		if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
			return
		}
		root := doc.Content[0]
		for i := 0; i < len(root.Content); i += 2 {
			if value := root.Content[i+1]; value.Kind == yaml.SequenceNode && !yield(root.Content[i].Value, value) {
				return
			}
		}
	}
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// resources are the names that rules are about, sorted.
func resources(set rules.Set) (names []string) {
	for info := range infos(set) {
		if info.Named() && !slices.Contains(names, info.Resource) {
			names = append(names, info.Resource)
		}
	}
	slices.Sort(names)
	return names
}

// infos yields what all rules have in common, family by family.
func infos(set rules.Set) iter.Seq[spec.Info] {
	return func(yield func(spec.Info) bool) {
		all := reflect.ValueOf(set)
		for _, field := range all.Fields() {
			for i := range field.Len() {
				if !yield(field.Index(i).Interface().(interface{ Info() spec.Info }).Info()) {
					return
				}
			}
		}
	}
}
