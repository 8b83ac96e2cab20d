package refusal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
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
		body = refused.Problem()
		header.Set("Content-Type", ProblemType)
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
	if !limited {
		return
	}
	quota, prefix := strconv.FormatInt(int64(limit), 10), "X-"
	switch form {
	case Draft10:
		unit := ""
		if r.class().atOnce {
			unit = `;qu="concurrent-requests"`
		}
		set("RateLimit-Policy", fmt.Sprintf("%q;q=%s%s", r.Kind(), quota, unit))
		left := fmt.Sprintf("%q;r=0", r.Kind())
		if known {
			left += ";t=" + after
		}
		set("RateLimit", left)
	case Legacy:
		prefix = ""
		fallthrough
	case XRateLimit:
		set(prefix+"RateLimit-Limit", quota)
		set(prefix+"RateLimit-Remaining", "0")
		if known {
			set(prefix+"RateLimit-Reset", after)
		}
	}
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
		p.Detail = fmt.Sprintf("Try again in %d s.", wait)
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
