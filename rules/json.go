package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// looksLikeJSON reports whether data is a JSON object or array. YAML is nearly
// a superset, but its parser refuses JSON's surrogate pairs and long keys.
func looksLikeJSON(data []byte) bool {
	data = bytes.TrimSpace(data)
	return (data[0] == '{' || data[0] == '[') && json.Valid(data)
}

// readJSON returns the root of the JSON text data as the node that YAML would
// give, or nil after reporting why there is none.
func (d *decoder) readJSON(data []byte) *yaml.Node {
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		at := place{1, 1}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = placeAt(data, int(syntax.Offset)-1)
		}
		d.add(at, "", "is not JSON: %v", err)
		return nil
	}
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, at: place{1, 1}}
	r.dec.UseNumber()
	root, err := r.value()
	if err != nil {
		d.add(r.at, "", "%v", err)
		return nil
	}
	return root
}

// jsonReader makes nodes of JSON tokens. The text is known to be JSON.
type jsonReader struct {
	dec    *json.Decoder
	data   []byte
	offset int   // of the token read last
	at     place // of offset
	nodes  int
}

var errManyNodes = errors.New("has too many keys and values from here on")

// token returns the next token and an empty node in its place.
func (r *jsonReader) token() (json.Token, *yaml.Node, error) {
	start := int(r.dec.InputOffset())
	token, err := r.dec.Token()
	if err != nil {
		return nil, nil, err
	}
	start += len(r.data[start:]) - len(bytes.TrimLeft(r.data[start:], " \t\r\n,:"))
	r.advance(start)
	if r.nodes++; r.nodes > 2*maxItems { // a key and a value each
		return nil, nil, errManyNodes
	}
	return token, &yaml.Node{Kind: yaml.ScalarNode, Line: r.at.line, Column: r.at.column}, nil
}

// advance moves to a later offset.
func (r *jsonReader) advance(offset int) {
	passed := string(r.data[r.offset:offset])
	if i := strings.LastIndexByte(passed, '\n'); i >= 0 {
		r.at = place{r.at.line + strings.Count(passed, "\n"), 1}
		passed = passed[i+1:]
	}
	r.at.column += utf8.RuneCountInString(passed)
	r.offset = offset
}

func (r *jsonReader) value() (*yaml.Node, error) {
	token, n, err := r.token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case string:
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if v {
			n.Value = "true"
		}
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for r.dec.More() {
			child, err := r.value() // a key is a string like another
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, _, err = r.token() // the end
	}
	return n, err
}
