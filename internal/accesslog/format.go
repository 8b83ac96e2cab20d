package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Format is a kind of log.
type Format struct {
	Name string
	// Stamp is the moment that a line's time stands for.
	Stamp Stamp
	make  func(o Options) (parser, error)
}

// Stamp is the moment that the time of a line stands for.
type Stamp uint8

// The moments.
const (
	Arrival Stamp = iota // of the request
	End                  // of the response
)

// String returns the word for it in flags.
func (s Stamp) String() string {
	if s == End {
		return "end"
	}
	return "arrival"
}

// Options configure a Reader.
type Options struct {
	// Fields are the fields of JSON lines and CSV, as in "time=ts,path=uri"; see [Fields].
	Fields string
	// Stamp overrides the format's.
	Stamp *Stamp
	// Want names the fields whose values a Record has. Any format has query:NAME, a parameter of
	// the query. Combined logs have user, referer and agent, ALB's agent and domain, JSON lines the
	// path of a value, such as request.host, and CSV the name or number of a column.
	Want []string
}

// parser parses lines. It sets the fields of a record that was reset.
type parser interface {
	parse(line []byte, r *Record) error
}

// formats are all formats. Combined logs are taken as they stand: without the server's name, nobody
// knows whether their stamp is the arrival or the end.
var formats = []Format{
	{"combined", Arrival, combined(nil)},
	{"nginx", End, combined((*combinedLine).nginx)},
	{"apache", Arrival, combined((*combinedLine).apache)},
	{"caddy", End, newCaddy},
	{"envoy", Arrival, newEnvoy},
	{"alb", Arrival, newALB},
	{"haproxy", Arrival, newHAProxy},
	{"json", Arrival, newJSON},
	{"csv", Arrival, newCSV},
}

// Names returns the names of all formats.
func Names() (all []string) {
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return all
}

// Find returns the format of that name.
func Find(name string) (Format, error) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, fmt.Errorf("unknown kind of log %q: use %s", name, strings.Join(Names(), ", "))
	}
	return formats[i], nil
}

// Detect returns the format of a line. A format that needs Fields is not detected, and nginx's and
// Apache's own logs are Combined.
func Detect(line []byte) (Format, bool) {
	name := ""
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
	case line[0] == '{' && bytes.Contains(line, []byte(`"request"`)) && bytes.Contains(line, []byte(`"ts"`)):
		name = "caddy"
	case line[0] == '{' && bytes.Contains(line, []byte(`"start_time"`)):
		name = "envoy"
	case line[0] == '{':
	case bytes.Contains(line, []byte(" haproxy[")):
		name = "haproxy"
	case isALB(line):
		name = "alb"
	case bytes.Contains(line, []byte(`] "`)):
		name = "combined"
	}
	f, err := Find(name)
	return f, err == nil
}

// indexOf returns the index of a wanted field, or -1.
func indexOf(want []string, name string) int { return slices.Index(want, name) }

// querying is the beginning of the names of query parameters.
const querying = "query:"

// checkWant returns an error for a wanted field that a format doesn't have.
func checkWant(want []string, has ...string) error {
	for _, name := range want {
		if !strings.HasPrefix(name, querying) && !slices.Contains(has, name) {
			return fmt.Errorf("these logs have no field %q: use %s", name, strings.Join(append(has, querying+"NAME"), ", "))
		}
	}
	return nil
}

// target sets the path and the query from the target of a request.
func (r *Record) target(t []byte) {
	if i := bytes.Index(t, []byte("://")); i > 0 && i < 8 && t[0] != '/' {
		t = t[i+3:]
		if i = bytes.IndexByte(t, '/'); i < 0 {
			t = []byte("/")
		} else {
			t = t[i:]
		}
	}
	if i := bytes.IndexByte(t, '#'); i >= 0 {
		t = t[:i]
	}
	if i := bytes.IndexByte(t, '?'); i >= 0 {
		t, r.Query = t[:i], t[i+1:]
	}
	r.Path = t
}

// request sets method and target from a request line, such as "GET / HTTP/1.1".
func (r *Record) request(line []byte) error {
	name, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(rest) == 0 || rest[0] == ' ' || !isMethod(name) {
		return errRequest
	}
	if i := bytes.LastIndex(rest, []byte(" HTTP/")); i >= 0 {
		rest = rest[:i]
	}
	r.Method = method(name)
	r.target(rest)
	return nil
}

// isMethod reports whether a request line begins like one, and not like a message of TLS.
func isMethod(name []byte) bool {
	for _, c := range name {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(name) > 0
}

// queries sets the wanted parameters of the query.
func (r *Record) queries(want []string) {
	for i, name := range want {
		if name, ok := strings.CutPrefix(name, querying); ok {
			for part := range bytes.SplitSeq(r.Query, []byte("&")) {
				if key, value, _ := bytes.Cut(part, []byte("=")); string(key) == name {
					r.Values[i] = value
					break
				}
			}
		}
	}
}
