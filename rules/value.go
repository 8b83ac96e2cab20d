package rules

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// readValue sets dst to the value n, a scalar or a list of strings, and returns the problem with n, or
// "". YAML has many spellings of a value; readValue accepts only JSON's, so that 010 is not 8 and yes
// is not true.
func readValue(n *yaml.Node, dst reflect.Value) (problem string) {
	switch v := dst.Addr().Interface().(type) {
	case *time.Duration:
		return readDuration(n, v)
	case interface{ SetScalar(any) error }:
		return readScalar(n, v.SetScalar)
	case interface{ SetBool(bool) }:
		return readBool(n, v.SetBool)
	case encoding.TextUnmarshaler:
		if !isText(n) {
			return notText(n)
		}
		if err := v.UnmarshalText([]byte(n.Value)); err != nil {
			return err.Error()
		}
	case *string:
		if !isText(n) {
			return notText(n)
		}
		*v = n.Value
	case *bool:
		return readBool(n, func(b bool) { *v = b })
	case *int:
		i, ok := wholeNumber(n)
		if !ok {
			return "must be a whole number, not " + describe(n)
		}
		*v = i
	case *[]string:
		return readStrings(n, v)
	case *map[string]int:
		return readNumbers(n, v, "whole numbers", "{gold: 4}", func(n *yaml.Node) (int, string) {
			if i, ok := wholeNumber(n); ok {
				return i, ""
			}
			return 0, "must be a whole number, not " + describe(n)
		})
	case *map[string]float64:
		return readNumbers(n, v, "numbers", "{free: 10, pro: 100}", readNumber)
	case *float64:
		f, problem := readNumber(n)
		if problem != "" {
			return problem
		}
		*v = f
	default:
		if dst.Kind() == reflect.Slice {
			return readScalars(n, dst)
		}
		panic(fmt.Sprintf("rules: a rule field can't be a %T", v)) // caught by the first test of a new family
	}
	return ""
}

// wholeNumber reads a number without a fraction, even if a serializer has written it as 20.0 or 2e1.
func wholeNumber(n *yaml.Node) (i int, ok bool) {
	if !isNumber(n) {
		return 0, false
	}
	if i, err := strconv.Atoi(n.Value); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	const exact = 1 << 53 // beyond it, a float64 may stand for several whole numbers
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact || f == 0 && !isZero(n.Value) {
		return 0, false
	}
	return int(f), int64(int(f)) == int64(f)
}

func readBool(n *yaml.Node, set func(bool)) (problem string) {
	if !isPlain(n) || n.Value != "true" && n.Value != "false" {
		return "must be true or false, not " + describe(n)
	}
	set(n.Value == "true")
	return ""
}

func readStrings(n *yaml.Node, dst *[]string) (problem string) {
	if n.Kind != yaml.SequenceNode {
		return "must be a list of strings, as in [a, b], not " + describe(n)
	}
	var list []string
	for i, item := range n.Content {
		if !isText(item) {
			return fmt.Sprintf("item %d %s", i, notText(item))
		}
		list = append(list, item.Value)
	}
	*dst = list
	return ""
}

func readNumber(n *yaml.Node) (f float64, problem string) {
	f, err := strconv.ParseFloat(n.Value, 64)
	if !isNumber(n) || err != nil {
		return 0, "must be a number like 100 or 0.5, not " + describe(n)
	}
	if f == 0 && !isZero(n.Value) {
		return 0, vanishes(n)
	}
	return f, ""
}

// readNumbers reads a mapping of numbers, each with read.
func readNumbers[N int | float64](n *yaml.Node, dst *map[string]N, kind, example string, read func(*yaml.Node) (N, string)) (problem string) {
	if n.Kind != yaml.MappingNode {
		return fmt.Sprintf("must be a mapping of %s, as in %s, not %s", kind, example, describe(n))
	}
	numbers := make(map[string]N)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || isNull(key) {
			return "a key must be a string, not " + describe(key)
		}
		if _, twice := numbers[key.Value]; twice {
			return fmt.Sprintf("%q is set twice", clip(key.Value))
		}
		number, problem := read(value)
		if problem != "" {
			return fmt.Sprintf("%q %s", clip(key.Value), problem)
		}
		numbers[key.Value] = number
	}
	*dst = numbers
	return ""
}

// readScalar passes on the value of n: a string, a bool, an int64, a uint64 or a float64.
func readScalar(n *yaml.Node, set func(any) error) (problem string) {
	var x any
	switch {
	case isText(n):
		x = n.Value
	case isPlain(n) && (n.Value == "true" || n.Value == "false"):
		x = n.Value == "true"
	case isNumber(n):
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			x = i
		} else if u, err := strconv.ParseUint(n.Value, 10, 64); err == nil {
			x = u
		} else if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			if f == 0 && !isZero(n.Value) {
				return vanishes(n)
			}
			x = f
		}
	}
	if x == nil {
		return "must be a string, a number, true or false, not " + describe(n)
	}
	if err := set(x); err != nil {
		return err.Error()
	}
	return ""
}

// readScalars reads a list of values, each with readScalar.
func readScalars(n *yaml.Node, dst reflect.Value) (problem string) {
	if n.Kind != yaml.SequenceNode {
		return "must be a list of values, as in [a, 7], not " + describe(n)
	}
	list := reflect.MakeSlice(dst.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		if problem := readValue(item, list.Index(i)); problem != "" {
			return fmt.Sprintf("item %d %s", i, problem)
		}
	}
	dst.Set(list)
	return ""
}

func readDuration(n *yaml.Node, dst *time.Duration) (problem string) {
	if isNumber(n) || isText(n) && isJSONNumber(strings.TrimLeft(n.Value, "+-")) {
		return fmt.Sprintf("must be a duration with its unit, as in %sms or %ss", n.Value, n.Value)
	}
	d, err := time.ParseDuration(n.Value)
	if !isText(n) || err != nil {
		return "must be a duration like 500ms, 1s or 1h30m, not " + describe(n)
	}
	if d == 0 && !isZero(n.Value) {
		return vanishes(n)
	}
	*dst = d
	return ""
}

// isZero reports whether a number, or a duration, is 0 as written, not only after rounding.
func isZero(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

func vanishes(n *yaml.Node) string { return clip(n.Value) + " is too small: it would be read as 0" }

// writeValue returns the value that readValue reads back.
func writeValue(src reflect.Value) (*yaml.Node, error) {
	switch v := src.Interface().(type) {
	case time.Duration:
		return textNode(formatDuration(v)), nil
	case interface{ Scalar() any }:
		return writeScalar(v.Scalar())
	case interface{ Bool() bool }:
		return writeScalar(v.Bool())
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		return textNode(string(text)), err
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("%q is not UTF-8", clip(v))
		}
		return textNode(v), nil
	case map[string]int:
		return writeNumbers(v)
	case map[string]float64:
		return writeNumbers(v)
	default:
		if src.Kind() == reflect.Slice {
			return writeList(src)
		}
		text, err := json.Marshal(v) // a bool or a number; refuses NaN and infinities
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(text)}, err
	}
}

func writeNumbers[N int | float64](v map[string]N) (*yaml.Node, error) {
	numbers := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		name, err := writeValue(reflect.ValueOf(key))
		if err != nil {
			return nil, err
		}
		number, err := writeValue(reflect.ValueOf(v[key]))
		if err != nil {
			return nil, err
		}
		numbers.Content = append(numbers.Content, name, number)
	}
	return numbers, nil
}

func writeList(src reflect.Value) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for i := range src.Len() {
		item, err := writeValue(src.Index(i))
		if err != nil {
			return nil, err
		}
		list.Content = append(list.Content, item)
	}
	return list, nil
}

func writeScalar(x any) (*yaml.Node, error) {
	switch x := x.(type) {
	case nil:
		return nil, errors.New("is not a string, a number or a boolean")
	case string:
		return writeValue(reflect.ValueOf(x))
	case float64:
		text, err := json.Marshal(x)
		if err == nil && !bytes.ContainsAny(text, ".e") {
			text = append(text, ".0"...) // or it would be read as a whole number
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(text)}, err
	}
	return writeValue(reflect.ValueOf(x))
}

// formatDuration is like [time.Duration.String], but drops zero minutes and seconds.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func isPlain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Style == 0 }
func isText(n *yaml.Node) bool  { return n.Kind == yaml.ScalarNode && n.Tag == "!!str" }
func isNull(n *yaml.Node) bool  { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
func isNumber(n *yaml.Node) bool {
	return isPlain(n) && isJSONNumber(n.Value)
}

func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && json.Valid([]byte(s))
}

func notText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		return fmt.Sprintf("must be a string, not %s: if it is meant as a string, write %q", describe(n), clip(n.Value))
	}
	return "must be a string, not " + describe(n)
}

// describe names n, for an error.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind != yaml.ScalarNode:
		return "an alias"
	case isNull(n):
		return "nothing"
	case isText(n) && !isNumber(n): // a plain 1e400 is text to YAML
		return fmt.Sprintf("the string %q", clip(n.Value))
	}
	return clip(n.Value)
}
