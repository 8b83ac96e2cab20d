package accesslog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// jsonLine parses objects, one on each line.
type jsonLine struct {
	fields Fields
	stamp  Stamp
	want   []string
}

func newJSON(o Options) (parser, error) {
	f, err := ParseFields(o.Fields)
	return &jsonLine{f, *o.Stamp, o.Want}, err
}

// newCaddy returns a parser for Caddy's access log, with durations as numbers or as text.
func newCaddy(o Options) (parser, error) {
	f := Fields{map[string]string{
		"time": "ts", "method": "request.method", "path": "request.uri", "status": "status", "took": "duration",
		"ip": "request.client_ip|request.remote_ip",
	}, time.Second}
	return &jsonLine{f, *o.Stamp, o.Want}, nil
}

// newEnvoy returns a parser for the JSON that Envoy's documentation and Istio configure.
func newEnvoy(o Options) (parser, error) {
	f := Fields{map[string]string{
		"time": "start_time", "method": "method", "path": "path", "status": "response_code", "took": "duration",
		"ip": "downstream_remote_address|x_forwarded_for",
	}, time.Millisecond}
	return &jsonLine{f, *o.Stamp, o.Want}, nil
}

func (p *jsonLine) parse(line []byte, r *Record) error {
	var object map[string]any
	if err := json.Unmarshal(line, &object); err != nil || object == nil {
		return errJSON
	}
	get := func(field string) []byte {
		for name := range strings.SplitSeq(field, "|") {
			if v := find(object, name); len(v) > 0 {
				return v
			}
		}
		return nil
	}
	if err := p.fields.fill(r, p.stamp, get); err != nil {
		return err
	}
	for i, name := range p.want {
		if !strings.HasPrefix(name, querying) {
			r.Values[i] = find(object, name)
		}
	}
	r.queries(p.want)
	return nil
}

// find returns the value at a path such as request.headers.Host as text. A key may contain dots. Of
// a list it is the first element.
func find(in any, path string) []byte {
	object, ok := in.(map[string]any)
	if !ok {
		return nil
	}
	if v, ok := object[path]; ok {
		return text(v)
	}
	for i := range len(path) {
		if path[i] == '.' {
			if inner, ok := object[path[:i]]; ok {
				if v := find(inner, path[i+1:]); v != nil {
					return v
				}
			}
		}
	}
	return nil
}

func text(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64)
	case bool:
		return strconv.AppendBool(nil, v)
	case []any:
		if len(v) > 0 {
			return text(v[0])
		}
	}
	return nil
}
