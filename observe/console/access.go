package console

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// access is the access level a route requires of its clients.
type access uint8

const (
	open    access = iota // the page, which has no data
	reads                 // data: the read token or the write token, if there is a read token
	changes               // changes something, or shows its effect: always the write token
)

// route is a row of the table that the mux is built from and that the tests iterate over.
type route struct {
	method, pattern string
	access          access
	serve           func(http.ResponseWriter, *http.Request) error
}

// problem is an error for the client, with a status.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) *problem {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// policy restricts the page to loading from its own origin, and forbids embedding it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handler serves everything. It checks, in order: the host name of the request, the route, the
// request's origin, its token, its body, and the number of concurrent requests.
func (c *console) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range c.routes() {
		mux.HandleFunc(r.method+" "+r.pattern, func(w http.ResponseWriter, req *http.Request) {
			err := c.admit(r, req)
			if err == nil && r.access == changes {
				err = c.readBody(w, req)
			}
			if err == nil {
				err = c.answer(r, w, req)
			}
			if err != nil {
				writeProblem(w, err)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		defer c.requests.Done()
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		if r.ContentLength != 0 && r.Body != nil {
			// The server reads the remainder of a body after the response, for at most this long.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
		}
		if !c.knows(r.Host) {
			writeProblem(w, refuse(http.StatusForbidden, "the console is not served under this name: add it to Config.Hosts"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// answer serves a request unless too many are being served.
func (c *console) answer(route route, w http.ResponseWriter, r *http.Request) error {
	if route.pattern == eventsPath { // it has its own limit
		return route.serve(w, r)
	}
	select {
	case c.answering <- struct{}{}:
		defer func() { <-c.answering }()
		return route.serve(w, r)
	default:
		return tooMany(w)
	}
}

// readBody reads the body of an admitted request before the request counts as being served, so that a
// slow client doesn't block others.
func (c *console) readBody(w http.ResponseWriter, r *http.Request) error {
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	default:
		return tooMany(w)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodySize))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return refuse(http.StatusRequestEntityTooLarge, "the maximum is %d bytes", bodySize)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "the body can't be read: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func tooMany(w http.ResponseWriter) error {
	w.Header().Set("Retry-After", "1")
	return refuse(http.StatusServiceUnavailable, "too many concurrent requests: try again")
}

// knows reports whether the console may be requested under this name, with any port, as ports may
// be forwarded. A name that resolves to this machine is not enough: any site can have one.
func (c *console) knows(hostPort string) bool {
	host, bracketed := hostPort, false
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host, bracketed = h, strings.HasPrefix(hostPort, "[")
	} else if inner, ok := strings.CutPrefix(hostPort, "["); ok {
		host, bracketed = strings.CutSuffix(inner, "]")
	}
	if strings.Contains(host, ":") != bracketed {
		return false
	}
	return slices.ContainsFunc(c.config.Hosts, func(known string) bool {
		return strings.EqualFold(strings.Trim(known, "[]"), host)
	})
}

// admit returns the reason for refusing a request, or nil. For a request from another site, the
// browser would hide the response, but the request would still take effect.
func (c *console) admit(route route, r *http.Request) error {
	if route.access == open {
		return nil
	}
	asked := *r
	asked.Method = http.MethodPost // the same rules for reads
	if err := c.origins.Check(&asked); err != nil {
		return refuse(http.StatusForbidden, "%v", err)
	}
	token := bearer(r.Header.Get("Authorization"))
	writes := isToken(token, c.config.WriteToken)
	switch {
	case route.access == changes && !c.config.WriteRules:
		return refuse(http.StatusForbidden, "rules can't be changed here: Config.WriteRules is off")
	case route.access == changes && !writes:
		return refuse(http.StatusUnauthorized, "the write token is missing or wrong")
	case route.access == reads && c.config.ReadToken != "" && !writes && !isToken(token, c.config.ReadToken):
		return refuse(http.StatusUnauthorized, "the token is missing or wrong")
	}
	return nil
}

// bearer returns the token of a header, or "" for another scheme. Schemes are case-insensitive.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(strings.TrimLeft(header, " "), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// isToken compares in constant time, so that timing reveals nothing about the token or its length.
func isToken(given, token string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && token != ""
}

func writeProblem(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if p, ok := errors.AsType[*problem](err); ok {
		status = p.status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body, _ := json.Marshal(map[string]string{"error": err.Error()}) // strings can always be encoded
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

const jsonType = "application/json; charset=utf-8"

// answers limits the memory of responses. They are built one at a time, and the total size of unread
// ones is bounded, even if clients don't read.
type answers struct {
	making sync.Mutex // one at a time, as values are larger than their JSON; locked before console.making

	mu   sync.Mutex
	held int // bytes
}

// maxHeld is the maximum number of bytes of unread responses; one response alone may be larger.
const maxHeld = 64 << 20

// hold counts a response of n bytes, if there is room.
func (a *answers) hold(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held > 0 && a.held+n > maxHeld {
		return false
	}
	a.held += n
	return true
}

func (a *answers) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += n
}

// make returns the JSON of a value, which counts as held.
func (a *answers) make(value func() (any, error)) ([]byte, error) {
	a.making.Lock()
	defer a.making.Unlock()
	v, err := value()
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// reply sends a value as JSON, or an error that there are too many unread responses.
func (c *console) reply(w http.ResponseWriter, value func() (any, error)) error {
	body, err := c.unread.make(value)
	if err != nil {
		return err
	}
	if !c.unread.hold(len(body)) {
		return tooMany(w)
	}
	return c.write(w, body)
}

// write sends a response that is held.
func (c *console) write(w http.ResponseWriter, body []byte) error {
	defer c.unread.add(-len(body))
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(body) // fails when the client has disconnected
	return nil
}
