package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fields maps the parts of a request to the fields of JSON lines or CSV. In text it is a list such
// as
//
//	time=ts,method=request.method,path=request.uri,status=status,took=duration:ms,ip=client
//
// time, and one of resource, path (with or without a query) and request (a request line) are
// required. took has a unit, s unless s, ms, us or ns follows a colon. The other parts are origin and
// units.
type Fields struct {
	of   map[string]string
	unit time.Duration
}

var (
	parts     = []string{"time", "resource", "path", "request", "method", "status", "took", "ip", "origin", "units"}
	tookUnits = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}
)

// ParseFields parses a list.
func ParseFields(text string) (Fields, error) {
	f := Fields{of: make(map[string]string), unit: time.Second}
	if text == "" {
		return f, errors.New(`JSON lines and CSV need --fields, such as "time=ts,path=uri,status=status,ip=client"`)
	}
	for pair := range strings.SplitSeq(text, ",") {
		part, field, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || field == "" || !slices.Contains(parts, part) {
			return f, fmt.Errorf("--fields: %q: use PART=FIELD, where PART is one of %s", pair, strings.Join(parts, ", "))
		}
		if f.of[part] != "" {
			return f, fmt.Errorf("--fields: %s occurs twice", part)
		}
		if i := strings.LastIndexByte(field, ':'); part == "took" && i >= 0 {
			unit, ok := tookUnits[field[i+1:]]
			if !ok {
				return f, fmt.Errorf("--fields: took has the unit %q: use s, ms, us or ns", field[i+1:])
			}
			field, f.unit = field[:i], unit
		}
		f.of[part] = field
	}
	if f.of["time"] == "" || f.of["resource"] == "" && f.of["path"] == "" && f.of["request"] == "" {
		return f, errors.New("--fields needs time, and one of resource, path and request")
	}
	return f, nil
}

// fill sets a record from its fields, which get returns; nil stands for a missing one.
func (f Fields) fill(r *Record, stamp Stamp, get func(field string) []byte) error {
	part := func(name string) []byte {
		if field := f.of[name]; field != "" {
			return get(field)
		}
		return nil
	}
	at, coarse, ok := timestamp(part("time"))
	if !ok {
		return errStamp
	}
	r.Coarse = coarse
	if text := part("took"); len(text) > 0 {
		if r.Took, ok = duration(text, f.unit); !ok {
			return errDuration
		}
	}
	if r.At = at; stamp == End {
		r.ended(at)
	}
	if text := part("status"); len(text) > 0 {
		var err error
		if r.Status, err = status(text); err != nil {
			return err
		}
	}
	switch resource, path, request := part("resource"), part("path"), part("request"); {
	case len(resource) > 0:
		r.Resource = resource
	case len(path) > 0:
		r.target(path)
	case len(request) > 0:
		if err := r.request(request); err != nil {
			return err
		}
	default:
		return errField
	}
	if name := part("method"); name != nil || r.Method == "" {
		r.Method = method(name)
	}
	r.Client, r.Origin = withoutPort(part("ip")), part("origin")
	if text := part("units"); len(text) > 0 {
		if r.Units = digits(text); r.Units < 1 {
			return errField
		}
	}
	return nil
}
