package accesslog

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
)

// Namer names the routes of requests as adapters do: "GET /users/{id}". It knows a list of routes,
// or learns them from the paths of a log: segments that are numbers, UUIDs, hashes or dates stand for
// a parameter, and so do all segments of a place with more than 50 different ones. It must learn all
// paths before it names the first.
type Namer struct {
	style   Style
	listed  *place
	only    bool // paths that aren't listed have no route
	learned *place
	places  int // learned ones
	path    []byte
}

// Style is a spelling of parameters in routes.
type Style uint8

// The spellings.
const (
	Braces Style = iota // /users/{id}, as in net/http
	Colons              // /users/:id, as in gin
)

// Unmatched names the requests that no route serves, as adapters do.
const Unmatched = "__unmatched__"

// Bounds of what a Namer learns.
const (
	maxValues   = 50     // different segments of one place
	maxPlaces   = 20_000 // of all; a new segment beyond them is part of the rest of the path
	maxSegments = 12     // the rest of a longer path is one parameter
	maxSegment  = 64     // bytes; a longer segment is a parameter
)

// place is a place in the tree of paths.
type place struct {
	segments map[string]*place // by their text
	any      *place            // a parameter
	folded   bool              // all segments are the parameter
	names    map[string]string // of the requests that end here, by method

	// Of a listed route only.
	rest    *place          // the rest of the path
	path    string          // as listed; "" if no route ends here
	methods map[string]bool // "" is any
}

// NewNamer returns a Namer that learns.
func NewNamer(s Style) *Namer { return &Namer{style: s, learned: new(place)} }

// List adds a route, such as "GET /users/{id}", "/files/{path...}" or "POST /users/:id/*path". In
// the style Braces, a path that ends in a slash includes everything below it, as in net/http.
func (n *Namer) List(route string) error {
	verb, path, ok := strings.Cut(strings.TrimSpace(route), " ")
	if !ok {
		verb, path = "", verb
	}
	path = strings.TrimSpace(path)
	if !strings.HasPrefix(path, "/") || ok && method([]byte(verb)) != verb {
		return fmt.Errorf("%q is not a route: use a method and a path, such as GET /users/{id}", route)
	}
	if n.listed == nil {
		n.listed = new(place)
	}
	at := n.listed
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		switch {
		case s == "{$}":
			at = at.segment("")
		case strings.HasSuffix(s, "...}"), strings.HasPrefix(s, "*"), s == "" && i == len(segments)-1 && n.style == Braces:
			if at.rest == nil {
				at.rest = new(place)
			}
			at = at.rest
		case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}"), strings.HasPrefix(s, ":"):
			if at.any == nil {
				at.any = new(place)
			}
			at = at.any
		default:
			at = at.segment(s)
		}
	}
	if at.methods == nil {
		at.methods = make(map[string]bool)
	}
	at.path, at.methods[verb] = path, true
	return nil
}

// ListedOnly makes all requests without a listed route Unmatched, instead of learning their routes.
func (n *Namer) ListedOnly() { n.only = true }

func (p *place) segment(text string) *place {
	if p.segments == nil {
		p.segments = make(map[string]*place)
	}
	next := p.segments[text]
	if next == nil {
		next = new(place)
		p.segments[text] = next
	}
	return next
}

// Learn adds the path of a request.
func (n *Namer) Learn(verb string, path []byte) {
	if n.only || len(path) == 0 || path[0] != '/' || n.find(n.listed, verb, path) != nil {
		return
	}
	at := n.learned
	depth := 0
	for s := range segments(path) {
		if depth++; depth > maxSegments {
			return
		}
		switch next := at.segments[string(s)]; {
		case at.folded && len(s) > 0:
			at = at.any
		case isParameter(s):
			if at.any == nil {
				if n.places >= maxPlaces {
					return
				}
				n.places++
				at.any = new(place)
			}
			at = at.any
		case next != nil:
			at = next
		case n.places >= maxPlaces:
			return
		default:
			n.places++
			next = at.segment(string(s))
			if len(at.segments) > maxValues {
				n.fold(at)
				next = at.any
			}
			at = next
		}
	}
}

// fold makes all segments of a place one parameter.
func (n *Namer) fold(p *place) {
	segments := p.segments
	p.folded, p.segments = true, nil
	if p.any == nil {
		n.places++
		p.any = new(place)
	}
	for text, from := range segments {
		if text == "" { // after a final slash
			p.segments = map[string]*place{"": from}
			continue
		}
		n.merge(p.any, from)
	}
}

// merge adds the places below from to those below into. The result is the same in any order: a place
// is folded if its segments, taken together, are too many.
func (n *Namer) merge(into, from *place) {
	n.places--
	if from.folded && !into.folded {
		n.fold(into)
	}
	if from.any != nil {
		if into.any == nil {
			into.any = from.any
		} else {
			n.merge(into.any, from.any)
		}
	}
	for text, next := range from.segments {
		switch old := into.segments[text]; {
		case into.folded && text != "":
			n.merge(into.any, next)
		case old != nil:
			n.merge(old, next)
		default:
			if into.segments == nil {
				into.segments = make(map[string]*place)
			}
			if into.segments[text] = next; len(into.segments) > maxValues && !into.folded {
				n.fold(into)
			}
		}
	}
}

// Name returns the name of a request's route. Names of one route share their memory.
func (n *Namer) Name(verb string, path []byte) string {
	if at := n.find(n.listed, verb, path); at != nil {
		own := verb
		if verb == "HEAD" && !at.methods["HEAD"] && at.methods["GET"] {
			own = "GET" // the route of GET serves it
		}
		return at.name(own, func() string { return at.path })
	}
	if n.only || len(path) == 0 || path[0] != '/' {
		return n.learned.name(verb, func() string { return Unmatched })
	}
	to := n.path[:0]
	at := n.learned
	depth, parameters := 0, 0
	for s := range segments(path) {
		next := at.segments[string(s)]
		parameter := next == nil
		if parameter {
			next = at.any
		}
		depth++
		if depth > maxSegments || next == nil || parameter && (len(s) == 0 || !at.folded && !isParameter(s)) {
			to = append(to, "/{path...}"...)
			if n.style == Colons {
				to = append(to[:len(to)-len("{path...}")], "*path"...)
			}
			at = at.segment(restKey)
			break
		}
		at = next
		if to = append(to, '/'); !parameter {
			to = append(to, s...)
			continue
		}
		id := "id"
		if parameters++; parameters > 1 {
			id = fmt.Sprint("id", parameters)
		}
		if n.style == Colons {
			to = append(append(to, ':'), id...)
		} else {
			to = append(append(append(to, '{'), id...), '}')
		}
	}
	n.path = to
	return at.name(verb, func() string { return string(to) })
}

// restKey is the segment of a place for names that end in the rest of the path. No path has it.
const restKey = "/"

func (p *place) name(verb string, path func() string) string {
	name, ok := p.names[verb]
	if !ok {
		if p.names == nil {
			p.names = make(map[string]string)
		}
		name = verb + " " + path()
		p.names[verb] = name
	}
	return name
}

// find returns the place of the listed route of a path, or nil. A segment goes before a parameter,
// and both before the rest of the path.
func (n *Namer) find(at *place, verb string, path []byte) *place {
	if at == nil || len(path) == 0 || path[0] != '/' {
		return nil
	}
	s, rest := path[1:], []byte(nil)
	if i := bytes.IndexByte(s, '/'); i >= 0 {
		s, rest = s[:i], s[i:]
	}
	for _, next := range []*place{at.segments[string(s)], at.any} {
		if next == nil || next == at.any && len(s) == 0 {
			continue
		}
		if len(rest) == 0 {
			if n.serves(next, verb) {
				return next
			}
		} else if found := n.find(next, verb, rest); found != nil {
			return found
		}
	}
	if at.rest != nil && n.serves(at.rest, verb) {
		return at.rest
	}
	return nil
}

// serves reports whether a route of this method ends at a place. In net/http, GET serves HEAD.
func (n *Namer) serves(at *place, verb string) bool {
	return at.path != "" && (at.methods[verb] || at.methods[""] || n.style == Braces && verb == "HEAD" && at.methods["GET"])
}

// segments yields the parts of a path. Slashes that follow each other count as one.
func segments(path []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(path) > 0 {
			s := path[1:]
			if i := bytes.IndexByte(s, '/'); i >= 0 {
				s, path = s[:i], s[i:]
			} else {
				path = nil
			}
			if len(s) == 0 && path != nil {
				continue
			}
			if !yield(s) {
				return
			}
		}
	}
}

// isParameter reports whether a segment looks like a number, a UUID, a hash, a date or a long text.
func isParameter(s []byte) bool {
	if len(s) == 0 {
		return false
	}
	if len(s) > maxSegment {
		return true
	}
	var numbers, hex, letters, upper, dashes int
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
			numbers++
		case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
			hex++
			if c <= 'F' {
				upper++
			}
		case c >= 'g' && c <= 'z':
			letters++
		case c >= 'G' && c <= 'Z':
			letters++
			upper++
		case c == '-' && i > 0:
			dashes++
		default:
			return false
		}
	}
	small := hex + letters - upper
	switch {
	case numbers == len(s):
		return true // a number
	case letters == 0 && hex == 0 && dashes == 2 && numbers >= 6 && numbers <= 8:
		return true // a date
	case letters == 0 && dashes == 4 && len(s) == 36:
		return true // a UUID
	case letters == 0 && dashes == 0 && len(s) >= 8 && numbers >= 2:
		return true // hexadecimal
	}
	return len(s) >= 20 && numbers >= 2 && small >= 2 && upper >= 2 // base64
}
