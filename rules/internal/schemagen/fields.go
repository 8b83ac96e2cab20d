package main

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

// field describes a field of a rule.
func (g *generator) field(t reflect.Type, field reflect.StructField, path string) (object, error) {
	key := keyOf(field)
	described := object{{"description", g.docs.of(t, field)}}
	within := path + "." + key
	switch x := reflect.New(field.Type).Interface().(type) {
	case *time.Duration:
		return append(described, member{"type", "string"}, member{"pattern", aDuration}), nil
	case *hotspot.Index:
		return append(described, member{"type", "integer"}, member{"minimum", -hotspot.MaxIndex}, member{"maximum", hotspot.MaxIndex}), nil
	case *flow.Watermark:
		return append(described, member{"anyOf", []object{
			{{"type", "number"}, {"minimum", 0}, {"maximum", 1}},
			{{"type", "string"}, {"pattern", anAmount}},
		}}), nil
	case *argument.Value:
		return append(described, member{"type", []string{"string", "number", "boolean"}}, member{"maxLength", longest[within]}), nil
	case *[]argument.Value:
		item := object{{"type", []string{"string", "number", "boolean"}}, {"maxLength", longest[within]}}
		return append(described, member{"type", "array"}, member{"items", item}, member{"minItems", 2}, member{"maxItems", hotspot.MaxKeys}), nil
	case interface{ SetBool(bool) }:
		return append(described, member{"type", "boolean"}), nil
	case *spec.Percent:
		return append(described, member{"type", "string"}, member{"pattern", aPercentage}), nil
	case encoding.TextUnmarshaler:
		return append(described, g.enum(field.Type)...), nil
	case *bool:
		return append(described, member{"type", "boolean"}), nil
	case *string:
		described = append(described, member{"type", "string"})
		if p, ok := patterns[within]; ok {
			described = append(described, member{"pattern", p})
		}
		return append(described, lengths(path, key, "minLength", "maxLength")...), nil
	case *[]string:
		item := append(object{{"type", "string"}}, lengths(path, key+".", "minLength", "maxLength")...)
		if p, ok := patterns[within+"."]; ok {
			item = append(item, member{"pattern", p})
		}
		described = append(described, member{"type", "array"}, member{"items", item})
		if isRequired(field) || within == "hotspot.keys" || key == "notify" { // names must be unique; exclude may repeat one
			described = append(described, member{"uniqueItems", true})
		}
		return append(described, lengths(path, key, "minItems", "maxItems")...), nil
	case *map[string]int:
		s, ok := rangeOf(within, key)
		if !ok {
			return nil, fmt.Errorf("has no range: add one to spans")
		}
		return append(described, member{"type", "object"}, member{"maxProperties", spec.MaxWeights},
			member{"propertyNames", object{{"minLength", 1}, {"maxLength", pattern.MaxName}}},
			member{"additionalProperties", object{{"type", "integer"}, {"minimum", s.least}, {"maximum", s.most}}}), nil
	case *map[string]float64:
		s, ok := rangeOf(within, key)
		if !ok {
			return nil, fmt.Errorf("has no range: add one to spans")
		}
		return append(described, member{"type", "object"}, member{"maxProperties", hotspot.MaxPlans},
			member{"propertyNames", object{{"minLength", 1}, {"maxLength", argument.MaxText}}},
			member{"additionalProperties", append(object{{"type", "number"}}, s.describe()...)}), nil
	case *int, *float64:
		kind := "number"
		if _, whole := x.(*int); whole {
			kind = "integer"
		}
		s, ok := rangeOf(within, key)
		if !ok {
			return nil, fmt.Errorf("has no range: add one to spans")
		}
		return append(append(described, member{"type", kind}), s.describe()...), nil
	}
	if field.Type.Kind() == reflect.Struct {
		of, err := g.structure(field.Type, within)
		return append(described, of...), err
	}
	if field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct {
		items, err := g.structure(field.Type.Elem(), within)
		if err != nil {
			return nil, err
		}
		described = append(described, member{"type", "array"}, member{"items", items})
		return append(described, lengths(path, key, "minItems", "maxItems")...), nil
	}
	return nil, fmt.Errorf("how is a %v written in a file? Say so in schemagen", field.Type)
}

func (s span) describe() object {
	if s.least > 0 {
		return object{{"anyOf", []object{{{"const", 0}}, {{"minimum", s.least}}}}, {"maximum", s.most}}
	}
	return object{{"minimum", s.least}, {"maximum", s.most}}
}

// lengths returns the length limits for a field of one family, or of all families.
func lengths(path, key, least, most string) (described object) {
	for i, table := range []map[string]int{shortest, longest} {
		n, ok := table[path+"."+key]
		if !ok {
			n, ok = table[key]
		}
		if ok {
			described = append(described, member{[]string{least, most}[i], n})
		}
	}
	return described
}

// zero returns the values that mean the same as leaving the field out.
func zero(t reflect.Type) object {
	switch reflect.New(t).Interface().(type) {
	case *time.Duration:
		return object{{"type", "string"}, {"pattern", zeroDuration}}
	case *flow.Watermark:
		return object{{"anyOf", []object{{{"const", 0}}, {{"type", "string"}, {"pattern", zeroAmount}}}}}
	case *spec.Floors:
		return object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}, {"pattern", zeroPercent}}}}
	case interface{ SetBool(bool) }:
		zero, _ := reflect.Zero(t).Interface().(interface{ Bool() bool })
		return object{{"const", zero.Bool()}}
	case encoding.TextMarshaler:
		text, _ := reflect.Zero(t).Interface().(encoding.TextMarshaler).MarshalText()
		return object{{"const", string(text)}}
	}
	return object{{"const", reflect.Zero(t).Interface()}}
}

// enum describes an enumeration.
func (g *generator) enum(t reflect.Type) object {
	described := object{{"type", "string"}, {"enum", g.namesOf(t)}}
	if help := g.docs.values(t, g.namesOf(t)); help != nil {
		described = append(described, member{"enumDescriptions", help})
	}
	return described
}

// namesOf returns the names of an enumeration in files, the zero value's first if it has one there.
func (g *generator) namesOf(t reflect.Type) (all []string) {
	reads := func(name string) bool {
		return reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name)) == nil
	}
	for i := range uint64(256) {
		v := reflect.New(t).Elem()
		v.SetUint(i)
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			break
		}
		if reads(string(text)) {
			all = append(all, string(text))
		}
	}
	for _, alias := range aliases {
		if reads(alias) {
			all = append(all, alias)
		}
	}
	return all
}

// aliases are names that are read but never written: Sentinel's names of lists.
var aliases = []string{"white", "black"}

func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return key
}

func isRequired(field reflect.StructField) bool {
	return !strings.Contains(field.Tag.Get("yaml"), ",omitempty")
}

func fieldOf(t reflect.Type, key string) (reflect.StructField, error) {
	for field := range t.Fields() {
		if keyOf(field) == key {
			return field, nil
		}
	}
	return reflect.StructField{}, fmt.Errorf("%v has no field %q, which a table of schemagen names", t, key)
}

// rangeOf returns the range of a number in one family, or in all families.
func rangeOf(within, key string) (s span, ok bool) {
	if s, ok = spans[within]; !ok {
		s, ok = spans[key]
	}
	return s, ok
}
