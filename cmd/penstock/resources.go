package main

import (
	"iter"
	"reflect"
	"slices"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// resources returns the names in rules, sorted.
func resources(set rules.Set) (names []string) {
	for info := range infos(set) {
		if info.Named() && !slices.Contains(names, info.Resource) {
			names = append(names, info.Resource)
		}
	}
	slices.Sort(names)
	return names
}

// infos yields the common part of all rules, family by family.
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
