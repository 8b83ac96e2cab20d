package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// Durations as [time.ParseDuration] reads them: aDuration is not negative, and zeroDuration is 0.
// Percentages as [spec.Percent] reads them.
const (
	aDuration    = `^(\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|-((0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h))+)$`
	aPercentage  = `^0*(100|[0-9]{1,2})%$`
	zeroPercent  = `^0+%$`
	zeroDuration = `^[-+]?((0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h))+$`
	anAmount     = `^[0-9]+(TiB|GiB|MiB|KiB|B)$`
	zeroAmount   = `^0+(TiB|GiB|MiB|KiB|B)$`
)

// generator builds the schema.
type generator struct {
	docs *comments
}

// generate returns the schema, as in its files.
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
		{"description", "A rule file: the rules of each family under its key, in the order in which they are declared. The loader checks what a schema can't express, such as the range of a duration or a repeated id."},
		{"type", []string{"object", "array"}},
		{"maxItems", 0}, // a list means that there are no rules
		{"properties", object{{"dialect", dialect}}},
		{"if", object{
			{"properties", object{{"dialect", object{{"enum", []string{rules.SentinelJava.String(), rules.SentinelGo.String()}}}}}},
			{"required", []string{"dialect"}},
		}},
		{"then", object{{"description", "Sentinel rules, which this schema doesn't describe."}}},
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

// structure describes a rule, or an element of a list in one. path is the key of its family, and of
// the list.
func (g *generator) structure(t reflect.Type, path string) (object, error) {
	fields := object{}
	var required []string
	lenient, _ := reflect.Zero(t).Interface().(interface{ MayOmit(key string) bool })
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
			{{"required", []string{"keys"}}, {"properties", object{{"keys", object{{"minItems", 1}}}}}},
		}})
	}
	if path == "hotspot.exceptions" {
		described = append(described, member{"oneOf", []object{{{"required", []string{"value"}}}, {{"required", []string{"values"}}}}})
	}
	cases := cases[path]
	if named {
		cases = slices.Concat(names, cases)
	}
	for i, c := range slices.Concat(cases, strictCases[path]) {
		condition, err := g.condition(t, c)
		if err != nil {
			return nil, err
		}
		if i >= len(cases) {
			strict, err := g.clauses(t, []clause{notFalse})
			if err != nil {
				return nil, err
			}
			condition = object{{"allOf", []object{condition, strict}}}
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

// condition is true if a field has one of the values of a case.
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
	byDefault := known[0] // the meaning of an absent field, unless it has no name
	if zero := fmt.Sprint(reflect.Zero(field.Type).Interface()); !slices.Contains(known, zero) {
		byDefault = zero
	}
	if isRequired(field) || !slices.Contains(c.values, byDefault) {
		condition = append(condition, member{"required", []string{c.field}})
	}
	return condition, nil
}

// clauses returns the clauses of a case, as one schema.
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
			case lacking:
				one := object{{"properties", object{{"value", object{{"const", c.value}}}}}, {"required", []string{"value"}}}
				part := object{{"properties", object{{"values", object{{"contains", object{{"const", c.value}}}}}}}, {"required", []string{"values"}}}
				must = object{{"not", object{{"contains", object{{"anyOf", []object{one, part}}}}}}}
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
