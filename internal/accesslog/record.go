package accesslog

import "time"

// Record is a request of a log. Its byte slices are valid until the next call of [Reader.Next].
type Record struct {
	At     int64         // arrival, in nanoseconds since 1970
	Coarse bool          // At is known to the second only
	Took   time.Duration // from arrival to the end of the response; negative if not logged
	Status int           // 0 if not logged
	Method string        // a method of HTTP, or OtherMethod
	Path   []byte        // as requested, escaped, without the query
	Query  []byte
	Client []byte // the address, as logged

	// Resource, Origin and Units are set by formats with [Fields] only.
	Resource []byte
	Origin   []byte
	Units    int

	// Values are the wanted fields, nil where a line has none.
	Values [][]byte
}

// OtherMethod replaces methods unknown to HTTP, as in adapters.
const OtherMethod = "_OTHER"

func method(name []byte) string {
	switch string(name) {
	case "GET", "":
		return "GET"
	case "POST":
		return "POST"
	case "HEAD":
		return "HEAD"
	case "PUT":
		return "PUT"
	case "DELETE":
		return "DELETE"
	case "PATCH":
		return "PATCH"
	case "OPTIONS":
		return "OPTIONS"
	case "CONNECT":
		return "CONNECT"
	case "TRACE":
		return "TRACE"
	}
	return OtherMethod
}

// reset clears a record for the next line, and keeps the memory of its values.
func (r *Record) reset(values int) {
	all := r.Values[:0]
	for range values {
		all = append(all, nil)
	}
	*r = Record{Took: -1, Units: 1, Values: all}
}

// ended makes at, the time of the response's end, the arrival. With a stamp in whole seconds the end
// lies half a second after it, on average.
func (r *Record) ended(at int64) {
	took := max(r.Took, 0)
	if r.Coarse {
		at += int64(time.Second) / 2
		at -= int64(took)
		r.At = at - floorMod(at, int64(time.Second))
		return
	}
	r.At = at - int64(took)
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }
