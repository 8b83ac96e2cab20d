package spec

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
)

// Clone returns deep copies of rules: changing one copy doesn't change the other. It panics if an
// exported field has a type that it doesn't copy, such as a pointer; rules must not have such
// fields.
func Clone[R any](rules []R) []R {
	list := reflect.ValueOf(&rules).Elem()
	known, ok := copiers.Load(list.Type())
	if !ok {
		known, _ = copiers.LoadOrStore(list.Type(), copierOf(list.Type()))
	}
	known.(copier)(list)
	return rules
}

// copiers caches the copier of each list type.
var copiers sync.Map

// copier replaces the shared parts of a variable with copies. A nil copier is for types whose
// values share nothing.
type copier func(reflect.Value)

func copierOf(t reflect.Type) copier {
	switch kind := t.Kind(); {
	case kind == reflect.String, kind <= reflect.Complex128:
		return nil
	case kind == reflect.Slice:
		return copierOfLists(t)
	case kind == reflect.Struct:
		return copierOfStructs(t)
	case kind == reflect.Map && copierOf(t.Key()) == nil && copierOf(t.Elem()) == nil:
		return copyMap
	}
	panic(fmt.Sprintf("core: a rule can't hold a %v", t)) // the first test of a new family detects this
}

func copierOfLists(t reflect.Type) copier {
	inner := copierOf(t.Elem())
	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v.Set(fresh)
		if inner != nil {
			for i := range fresh.Len() {
				inner(fresh.Index(i))
			}
		}
	}
}

func copierOfStructs(t reflect.Type) copier {
	type part struct {
		index int
		copy  copier
	}
	var parts []part
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			continue // only the type's package can change its contents
		}
		if c := copierOf(t.Field(i).Type); c != nil {
			parts = append(parts, part{i, c})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for _, p := range parts {
			p.copy(v.Field(p.index))
		}
	}
}

func copyMap(v reflect.Value) {
	if v.IsNil() {
		return
	}
	switch m := v.Addr().Interface().(type) { // without a reflection for each item
	case *map[string]float64:
		*m = maps.Clone(*m)
		return
	case *map[string]int:
		*m = maps.Clone(*m)
		return
	}
	fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
	for item := v.MapRange(); item.Next(); {
		fresh.SetMapIndex(item.Key(), item.Value())
	}
	v.Set(fresh)
}
