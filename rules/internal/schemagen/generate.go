package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
)

// Durations as [time.ParseDuration] reads them, without what is below 0, and those that are 0.
const (
	aDuration    = `^(\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|-((0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h))+)$`
	zeroDuration = `^[-+]?((0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h))+$`
	anAmount     = `^[0-9]+(TiB|GiB|MiB|KiB|B)$`
	zeroAmount   = `^0+(TiB|GiB|MiB|KiB|B)$`
)

// generator makes the schema.
type generator struct {
	docs *comments
}

// generate returns the schema, as it stands in files.
func generate(root string) ([]byte, error) {
	g := generator{newComments(root)}
	native, err := g.native()
	if err != nil {
		return nil, err
	}
	dialect := g.enum(reflect.TypeFor[rules.Dialect]())
	schema := object{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"$id", rules.SchemaURL},
		{"title", "Rules of Penstock"},
		{"description", "A rule file: the rules of each family under its key, in the order in which they are declared. What a schema can't say, such as how long a duration may be or that no id is there twice, the loader checks."},
		{"type", "object"},
		{"properties", object{{"dialect", dialect}}},
		{"if", object{
			{"properties", object{{"dialect", object{{"enum", []string{rules.SentinelJava.String(), rules.SentinelGo.String()}}}}}},
			{"required", []string{"dialect"}},
		}},
		{"then", object{{"description", "Rules of Sentinel's, which this schema doesn't describe."}}},
		{"else", object{{"$ref", "#/definitions/native"}}},
		{"definitions", native},
	}
	text, err := marshal(schema)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// native describes a native file, and the rules of each family.
func (g *generator) native() (definitions object, err error) {
	set := reflect.TypeFor[rules.Set]()
	lists := object{{"dialect", true}}
	for field := range set.Fields() {
		key := keyOf(field)
		rule := field.Type.Elem()
		described, err := g.structure(rule, key)
		if err != nil {
			return nil, err
		}
		list := object{
			{"description", g.docs.about(rule, rule)},
			{"type", "array"},
			{"maxItems", rules.MaxRules},
			{"items", object{{"$ref", "#/definitions/" + key}}},
		}
		if rule == reflect.TypeFor[rules.Cluster]() { // or a list of one
			one := object{{"$ref", "#/definitions/" + key}}
			list = object{list[0], {"anyOf", []object{one, {{"type", "array"}, {"maxItems", 1}, {"items", one}}}}}
		}
		lists = append(lists, member{key, list})
		definitions = append(definitions, member{key, described})
	}
	var some []object
	for _, l := range lists[1:] {
		some = append(some, object{{"required", []string{l.key}}})
	}
	return append(object{{"native", object{
		{"properties", lists},
		{"additionalProperties", false},
		{"anyOf", some},
	}}}, definitions...), nil
}

// structure describes a rule, or what is in a list of one. path is the key of its family, and of
// the list.
func (g *generator) structure(t reflect.Type, path string) (object, error) {
	fields := object{}
	var required []string
	lenient, _ := reflect.Zero(t).Interface().(interface{ MayLack(key string) bool })
	for field := range t.Fields() {
		key := keyOf(field)
		described, err := g.field(t, field, path)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", path, key, err)
		}
		fields = append(fields, member{key, described})
		if !strings.Contains(field.Tag.Get("yaml"), ",omitempty") && lenient == nil || key == "metric" && lenient != nil {
			required = append(required, key)
		}
	}
	described := object{{"type", "object"}}
	var all []object
	_, named := t.FieldByName("Match")
	if _, about := t.FieldByName("Resource"); !about {
		named = false // of a part of a rule, which names no resource
	}
	if named {
		fields = append(fields, member{"regex", object{
			{"description", "The same as match: regex if true, and as match: exact if false, as older files have it."},
			{"type", "boolean"},
		}})
		all = append(all, object{{"not", object{{"required", []string{"match", "regex"}}}}},
			object{
				{"if", object{{"properties", object{
					{"match", object{{"const", spec.MatchExact.String()}}},
					{"resource", object{{"not", object{{"const", spec.AnyResource}}}}},
				}}}},
				{"then", object{{"properties", object{{"exclude", object{{"maxItems", 0}}}}}}},
			})
	}
	described = append(described, member{"properties", fields}, member{"additionalProperties", false})
	if len(required) > 0 {
		described = append(described, member{"required", required})
	}
	if _, ok := t.FieldByName("Index"); ok {
		described = append(described, member{"oneOf", []object{
			{{"required", []string{"index"}}},
			{{"required", []string{"param"}}, {"properties", object{{"param", object{{"minLength", 1}}}}}},
		}})
	}
	cases := cases[path]
	if named {
		cases = slices.Concat(names, cases)
	}
	for _, c := range cases {
		condition, err := g.condition(t, c)
		if err != nil {
			return nil, err
		}
		then, err := g.clauses(t, c.then)
		if err != nil {
			return nil, err
		}
		all = append(all, object{{"if", condition}, {"then", then}})
	}
	for _, p := range partners[path] {
		says, err := g.clauses(t, []clause{{fields: p[0], must: stated}})
		if err != nil {
			return nil, err
		}
		then, err := g.clauses(t, []clause{{fields: p[1], must: stated}})
		if err != nil {
			return nil, err
		}
		all = append(all, object{{"if", says}, {"then", then}})
	}
	if len(all) > 0 {
		described = append(described, member{"allOf", all})
	}
	return described, nil
}

// condition is that a field has one of the values of a case.
func (g *generator) condition(t reflect.Type, c when) (object, error) {
	if c.field == "regex" {
		return object{{"properties", object{{"regex", object{{"const", true}}}}}, {"required", []string{"regex"}}}, nil
	}
	field, err := fieldOf(t, c.field)
	if err != nil {
		return nil, err
	}
	known := g.namesOf(field.Type)
	for _, v := range c.values {
		if !slices.Contains(known, v) {
			return nil, fmt.Errorf("%s is never %q, but one of %q", c.field, v, known)
		}
	}
	condition := object{{"properties", object{{c.field, object{{"enum", c.values}}}}}}
	byDefault := known[0] // what it means that there is none
	if isRequired(field) || !slices.Contains(c.values, byDefault) {
		condition = append(condition, member{"required", []string{c.field}})
	}
	return condition, nil
}

// clauses are those of a case, as one schema.
func (g *generator) clauses(t reflect.Type, list []clause) (object, error) {
	var properties object
	var required []string
	for _, c := range list {
		for _, key := range c.fields {
			field, err := fieldOf(t, key)
			if err != nil {
				return nil, err
			}
			var must object
			switch c.must {
			case unread:
				must = zero(field.Type)
			case needed:
				required = append(required, key)
				continue
			case stated:
				required = append(required, key)
				must = object{{"not", zero(field.Type)}}
			case oneOf:
				must = object{{"enum", c.value}}
			case most:
				must = object{{"maximum", c.value}}
			case inside:
				must = object{{"exclusiveMinimum", 0}}
			case below:
				must = object{{"exclusiveMaximum", c.value}}
			case empty:
				must = object{{"maxItems", 0}}
			case matching:
				must = object{{"pattern", c.value}}
			case other:
				must = object{{"not", object{{"const", c.value}}}}
			}
			if i := slices.IndexFunc(properties, func(m member) bool { return m.key == key }); i >= 0 {
				both := object{{"allOf", []any{properties[i].value, must}}}
				properties[i].value = both
				continue
			}
			properties = append(properties, member{key, must})
		}
	}
	var then object
	if properties != nil {
		then = append(then, member{"properties", properties})
	}
	if required != nil {
		then = append(then, member{"required", required})
	}
	return then, nil
}

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
	case interface{ SetBool(bool) }:
		return append(described, member{"type", "boolean"}), nil
	case encoding.TextUnmarshaler:
		return append(described, g.enum(field.Type)...), nil
	case *bool:
		return append(described, member{"type", "boolean"}), nil
	case *string:
		return append(append(described, member{"type", "string"}), lengths(path, key, "minLength", "maxLength")...), nil
	case *[]string:
		item := append(object{{"type", "string"}}, lengths(path, key+".", "minLength", "maxLength")...)
		described = append(described, member{"type", "array"}, member{"items", item})
		if isRequired(field) { // no name is there twice; in what is excluded one may be
			described = append(described, member{"uniqueItems", true})
		}
		return append(described, lengths(path, key, "minItems", "maxItems")...), nil
	case *int, *float64:
		kind := "number"
		if _, whole := x.(*int); whole {
			kind = "integer"
		}
		s, ok := spans[within]
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

// lengths are those of the field of a family, or of all.
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

// zero is what says the same as leaving the field out.
func zero(t reflect.Type) object {
	switch reflect.New(t).Interface().(type) {
	case *time.Duration:
		return object{{"type", "string"}, {"pattern", zeroDuration}}
	case *flow.Watermark:
		return object{{"anyOf", []object{{{"const", 0}}, {{"type", "string"}, {"pattern", zeroAmount}}}}}
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

// namesOf are the names that an enumeration takes in files, its zero value's first if it has one
// there.
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

// aliases are the names that are read and never written: those of Sentinel's lists.
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
