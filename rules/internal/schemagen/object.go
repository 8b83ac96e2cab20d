package main

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members stay in order.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		for part, x := range []any{m.key, m.value} {
			if part == 1 {
				out.WriteByte(':')
			}
			text, err := marshal(x)
			if err != nil {
				return nil, err
			}
			out.Write(text)
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// marshal writes < and > unescaped: descriptions are for people.
func marshal(x any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(x)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}
