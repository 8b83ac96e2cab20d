package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// encodeStruct returns the mapping that [decoder.structure] reads back.
func encodeStruct(rule reflect.Value, fields []field) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range fields {
		v := rule.Field(f.index)
		if f.omitEmpty && v.IsZero() {
			continue
		}
		value, err := writeField(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.key, err)
		}
		n.Content = append(n.Content, textNode(f.key), value)
	}
	return n, nil
}

// writeField returns the node that [decoder.structure] reads for one field: a value, or a list of
// mappings.
func writeField(v reflect.Value) (*yaml.Node, error) {
	switch {
	case isStructure(v.Type()):
		return encodeStruct(v, fieldsOf(v.Type()))
	case !holdsStructs(v.Type()):
		return writeValue(v)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range v.Len() {
		item, err := encodeStruct(v.Index(i), fieldsOf(v.Type().Elem()))
		if err != nil {
			return nil, fmt.Errorf("[%d].%w", i, err)
		}
		list.Content = append(list.Content, item)
	}
	return list, nil
}

// textNode returns a scalar that is read back as text even if it looks like something else. All but
// the plainest text is quoted with escapes: other styles fold line breaks and lose blanks. So is <<,
// since the encoder doesn't know that it is the merge key.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	beyondPlain := func(r rune) bool { return r < ' ' || r > unicode.MaxASCII-1 }
	if strings.ContainsFunc(s, beyondPlain) || strings.TrimSpace(s) != s || s == "<<" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// appendJSON appends a tree made by this file to b.
func appendJSON(b []byte, n *yaml.Node) ([]byte, error) {
	switch {
	case n.Kind == yaml.MappingNode:
		b, err := appendAll(append(b, '{'), n.Content, ",:")
		return append(b, '}'), err
	case n.Kind == yaml.SequenceNode:
		b, err := appendAll(append(b, '['), n.Content, ",,")
		return append(b, ']'), err
	case !isText(n):
		return append(b, n.Value...), nil
	}
	text, err := json.Marshal(n.Value)
	return append(b, text...), err
}

// appendAll appends nodes with the separators between them, alternating.
func appendAll(b []byte, nodes []*yaml.Node, separators string) (_ []byte, err error) {
	for i, n := range nodes {
		if i > 0 {
			b = append(b, separators[i%2])
		}
		if b, err = appendJSON(b, n); err != nil {
			return nil, err
		}
	}
	return b, nil
}
