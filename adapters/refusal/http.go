package refusal

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
)

// Write responds to an HTTP request with err, the error of a call that did not run: with a status,
// Retry-After where the time is known, and a problem of RFC 9457 as the body, which names no rule.
// It reports whether err is such an error; otherwise it does nothing.
//
// Middlewares of this project above the handler don't count the response as a failure, regardless
// of its status.
func Write(w http.ResponseWriter, r *http.Request, err error) bool {
	return WriteWith(w, r, err, NoHeaders)
}

// WriteWith is like [Write], but also sets headers that state the limit.
func WriteWith(w http.ResponseWriter, r *http.Request, err error, form Headers) bool {
	refused := Of(err)
	if refused.Reason == None {
		return false
	}
	Tell(r.Context(), err)
	header := w.Header()
	refused.SetHeaders(header.Set, form)
	var body []byte
	if refused.Reason != Gone {
		var contentType string
		body, contentType = refused.Body()
		header.Set("Content-Type", contentType)
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(refused.HTTPStatus())
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails if the client has disconnected
	}
	return true
}

// SetHeaders sets the headers of the response that reports the refusal, except those of its body.
func (r Refusal) SetHeaders(set func(name, value string), form Headers) {
	set("Cache-Control", "no-store")
	wait, known := r.RetryAfter(time.Second)
	after := strconv.FormatInt(wait, 10)
	if known {
		set("Retry-After", after)
	}
	if r.Reason != Blocked {
		return
	}
	limit, limited := r.Block.Limit()
	if !limited || form == NoHeaders {
		return
	}
	window, _ := r.Block.Window()
	if !known {
		after = ""
	}
	states{r.Kind(), int64(limit), 0, window, after, r.class().atOnce}.set(set, form)
}

// SetRemaining sets the headers of a response to a call that was admitted, from what the tightest of
// its rules has left: see [api.Admitted]. Call it before the handler writes.
func SetRemaining(header http.Header, form Headers, r api.Remaining) {
	s := states{r.Kind, r.Limit, min(r.Left, r.Limit), r.Window, "", false}
	if reset := cmp.Or(r.Resets, r.Window); reset > 0 {
		var room [20]byte
		s.reset = string(appendSeconds(room[:0], reset))
	}
	values := make([]string, 0, 3) // one allocation for all
	s.set(func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	}, form)
}

// states has the facts of a limit that headers state.
type states struct {
	kind        api.Kind
	quota, left int64
	window      time.Duration // 0 if unknown
	reset       string        // seconds, "" if unknown
	atOnce      bool
}

// set sets the headers, under their canonical names.
func (s states) set(set func(name, value string), form Headers) {
	var room [96]byte
	switch form {
	case RateLimit:
		policy := strconv.AppendInt(append(append(append(room[:0], '"'), s.kind.String()...), `";q=`...), s.quota, 10)
		if s.window >= time.Second {
			policy = appendSeconds(append(policy, ";w="...), s.window)
		}
		if s.atOnce {
			policy = append(policy, `;qu="concurrent-requests"`...)
		}
		set("Ratelimit-Policy", string(policy))
		field := strconv.AppendInt(append(append(append(room[:0], '"'), s.kind.String()...), `";r=`...), s.left, 10)
		if s.reset != "" {
			field = append(append(field, ";t="...), s.reset...)
		}
		set("Ratelimit", string(field))
	case Legacy:
		s.setThree(set, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset")
	case XRateLimit:
		s.setThree(set, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
	}
}

func (s states) setThree(set func(name, value string), limit, left, reset string) {
	set(limit, strconv.FormatInt(s.quota, 10))
	set(left, strconv.FormatInt(s.left, 10))
	if s.reset != "" {
		set(reset, s.reset)
	}
}

// appendSeconds appends a time in whole seconds, rounded up.
func appendSeconds(to []byte, d time.Duration) []byte {
	return strconv.AppendInt(to, int64((d+time.Second-1)/time.Second), 10)
}

// Body returns the body that reports the refusal and its content type: the rule's, or a [Refusal.Problem].
func (r Refusal) Body() (body []byte, contentType string) {
	if r.Reason == Blocked && r.Block.Body != "" {
		return []byte(r.Block.Body), spec.TypeOfBody(r.Block.Body)
	}
	return r.Problem(), ProblemType
}

// ProblemType is the content type of [Refusal.Problem].
const ProblemType = "application/problem+json"

// The types of problems that the draft of the RateLimit headers registers.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Problem returns a body of type [ProblemType] that reports the refusal, as in RFC 9457.
func (r Refusal) Problem() []byte {
	status := r.HTTPStatus()
	p := struct {
		Type   string `json:"type,omitempty"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{Title: http.StatusText(status), Status: status}
	switch status {
	case http.StatusTooManyRequests:
		p.Type = quotaExceeded
	case http.StatusServiceUnavailable:
		p.Type = reducedCapacity
	}
	if wait, known := r.RetryAfter(time.Second); known {
		p.Detail = "Try again in " + strconv.FormatInt(wait, 10) + " s."
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // text and numbers always marshal
	}
	return append(text, '\n')
}

// Listener is notified of refusals that a handler responds with.
type Listener interface {
	// Refused gets the error of [Tell]. It may run on any goroutine of the handler.
	Refused(err error)
}

type listenerKey struct{}

// Listen returns a context in which [Tell] notifies l and no other: for adapters around handlers
// that write responses and return no error.
func Listen(ctx context.Context, l Listener) context.Context {
	return context.WithValue(ctx, listenerKey{}, l)
}

// ListenerKey returns the context key of the [Listener]: for adapters whose own type is both
// context and listener.
func ListenerKey() any { return listenerKey{} }

// Tell reports that the handler with that context responds with err, the error of a nested call, so
// that it does not count as a failure of the handler. [Write] calls it.
func Tell(ctx context.Context, err error) {
	if l, ok := ctx.Value(listenerKey{}).(Listener); ok {
		l.Refused(err)
	}
}
