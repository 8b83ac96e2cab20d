// Package conformance tests adapters of HTTP servers: it runs one table of cases against a real
// server of the framework on the loopback interface, with real clients. Most programs don't import
// it: only the tests of adapters do.
//
//	conformance.Run(t, conformance.Server{Handler: handler})
//
// After each case no call is in flight or waiting. Frameworks on net/http run twice, over HTTP/1
// and over HTTP/2 with TLS.
//
// The page docs/adapters/conformance.md has more on the cases.
package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/internal/meet"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Route is a route that the server must have.
type Route struct {
	Method, Pattern string // the pattern is as in "/users/{id}"
	Handler         http.HandlerFunc
}

// Server is a framework with the adapter under test. It has a Handler or a Start, which serves on a
// listener that is closed when the test ends.
type Server struct {
	// Handler returns the routes, guarded with these options as a user would do it. It is for
	// frameworks on net/http.
	Handler func(t testing.TB, routes []Route, opts ...nethttp.Option) http.Handler
	// Start serves the routes on l, guarded with these options as a user would do it. It stops when
	// the test ends.
	Start func(t testing.TB, l net.Listener, routes []Route, opts ...nethttp.Option)
	// Pattern returns the framework's form of a pattern, which names the resources; nil means the
	// form in [Route].
	Pattern func(string) string
	// Without maps the names of cases that the framework can't run to the reason.
	Without map[string]string

	two bool // HTTP/2, over TLS
}

// Serve serves h on the loopback interface until the test ends, and returns its URL. The server's
// logs of panics are discarded.
func Serve(t testing.TB, h http.Handler) (url string) { return serve(t, nil, h, 0) }

// serve serves h on l, or on the loopback interface if that is nil.
func serve(t testing.TB, l net.Listener, h http.Handler, writeTimeout time.Duration) (url string) {
	s := unstarted(h)
	s.Config.WriteTimeout = writeTimeout
	if l != nil {
		_ = s.Listener.Close()
		s.Listener = l
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	return s.URL
}

// Colons writes a pattern in the form of frameworks whose wildcards begin with a colon.
func Colons(pattern string) string {
	return wildcard.ReplaceAllString(pattern, ":$1")
}

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// Run runs all cases.
func Run(t *testing.T, s Server) {
	if s.Handler == nil {
		s.run(t)
	} else {
		t.Run("HTTP/1", s.run)
		s.two = true
		t.Run("HTTP/2", s.run)
	}
	for name := range s.Without {
		if !slices.ContainsFunc(Cases, func(c Case) bool { return c.Name == name }) {
			t.Errorf("there is no case %q", name)
		}
	}
}

func (s Server) run(t *testing.T) {
	for _, c := range Cases {
		if c.only == netHTTP && s.Handler == nil || c.only == overTLS && !s.two || (c.only == http1 || c.socket) && s.two {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if why := s.Without[c.Name]; why != "" {
				t.Skip(why)
			}
			if err := c.Check(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Values of Case.only.
const (
	netHTTP = iota + 1 // frameworks on net/http
	overTLS            // servers that ask for certificates
	http1              // HTTP/1, where handlers can take over connections and clients write any bytes
)

// Case is one requirement for the adapter.
type Case struct {
	Name string
	Opts []nethttp.Option
	Set  api.RuleSet
	Run  func(*Stage) error
	// Patience limits the wait for an event that must come; 0 means the limit of go test.
	Patience time.Duration

	only   int  // 0 means all servers
	socket bool // the server listens on a Unix socket
	// writeTimeout is the server's WriteTimeout, if it is net/http's.
	writeTimeout time.Duration
}

// Check runs the case and returns an error that names what the adapter does wrong.
func (c *Case) Check(t testing.TB, s Server) error {
	g, err := api.New(api.Config{})
	if err != nil {
		return err
	}
	defer g.Close()
	if err := g.LoadRules(c.Set); err != nil {
		return err
	}
	st := &Stage{
		Guard: g, server: s, late: make(chan struct{}), meet: meet.New(cmp.Or(c.Patience, meet.Patience)),
	}
	transport := &http.Transport{ExpectContinueTimeout: st.meet.Patience}
	st.client = &http.Client{Transport: transport, Timeout: st.meet.Patience}
	defer close(st.meet.Over)
	defer st.client.CloseIdleConnections()
	opts := append([]nethttp.Option{nethttp.On(g)}, c.Opts...)
	if s.two {
		st.URL = serveTLS(t, st.deadlines(s.Handler(t, st.routes(), opts...)), transport, c.writeTimeout)
	} else {
		var l net.Listener
		if l, st.URL, err = c.listen(t, transport); err != nil {
			return err
		}
		if s.Handler == nil {
			s.Start(t, l, st.routes(), opts...)
		} else {
			serve(t, l, st.deadlines(s.Handler(t, st.routes(), opts...)), c.writeTimeout)
		}
	}
	if err := c.Run(st); err != nil {
		return err
	}
	return st.until("nothing is in flight", func() bool {
		tree := g.Tree()
		for _, n := range tree.Resources {
			if n.InFlight != 0 || n.Waiting != 0 {
				return false
			}
		}
		return tree.Waiting == 0
	})
}

// listen returns the server's listener, and its URL.
func (c *Case) listen(t testing.TB, transport *http.Transport) (l net.Listener, url string, err error) {
	if !c.socket {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, "", err
		}
		return l, "http://" + l.Addr().String(), nil
	}
	name := filepath.Join(t.TempDir(), "s") // a socket's name has at most a hundred bytes
	if l, err = net.Listen("unix", name); err != nil {
		return nil, "", err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // some frameworks close it and use a copy
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", name)
	}
	return l, "http://socket.test", nil
}

// Stage is the setting of a case: a server with its guard, and a client.
type Stage struct {
	URL   string
	Guard *api.Guard

	server Server
	client *http.Client
	meet   *meet.Point   // for the case and handlers that report their arrival and wait
	late   chan struct{} // closed when the deadline of requests that have one comes
}

// routes returns the routes that every server has.
func (s *Stage) routes() []Route {
	return []Route{
		{"GET", "/ok", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }},
		{"POST", "/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }},
		{"GET", "/users/{id}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "user") }},
		{"GET", "/files/{name}/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "files") }},
		{"CONNECT", "/files/{name}/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "files") }},
		{"GET", "/status", func(w http.ResponseWriter, r *http.Request) {
			status, err := strconv.Atoi(r.URL.Query().Get("is"))
			if err != nil {
				status = http.StatusTeapot
			}
			w.WriteHeader(status)
		}},
		{"GET", "/panic", func(http.ResponseWriter, *http.Request) { panic("the handler of /panic does as it says") }},
		{"GET", "/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"GET", "/proxy", func(_ http.ResponseWriter, r *http.Request) { // like httputil.ReverseProxy when its client has disconnected
			s.arrive()
			select {
			case <-s.meet.Over:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		}},
		{"GET", "/hold", func(w http.ResponseWriter, r *http.Request) {
			s.arrive()
			select {
			case <-s.meet.Release:
			case <-s.meet.Over:
			case <-r.Context().Done():
				w.WriteHeader(http.StatusInternalServerError) // as handlers do on errors
			}
		}},
		{"GET", "/nested", func(w http.ResponseWriter, r *http.Request) {
			e, err := s.Guard.Entry(r.Context(), "nested")
			if err != nil {
				refusal.Write(w, r, err)
				return
			}
			defer e.Exit()
		}},
		{"GET", "/level", func(w http.ResponseWriter, r *http.Request) {
			level, given := api.CriticalityOf(r.Context())
			_, _ = fmt.Fprint(w, level, " ", given)
		}},
		{"GET", "/settle", func(w http.ResponseWriter, r *http.Request) {
			used, _ := strconv.ParseInt(r.URL.Query().Get("used"), 10, 64)
			api.FromContext(r.Context()).Settle("tokens", used)
		}},
		{"GET", "/events", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			stream := http.NewResponseController(w)
			for n := range 3 {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
				if err := stream.Flush(); err != nil {
					panic(err)
				}
				s.arrive()
			}
		}},
		{"GET", "/socket", func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			s.arrive()
			_, _ = rw.WriteString(line)
			_ = rw.Flush()
			s.wait()
		}},
	}
}

// deadlines gives requests with a certain header a deadline, which expires when the case closes
// late, and the address of another client, as middlewares do that read it from a header.
func (s *Stage) deadlines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.Header.Get("X-Remote"); at != "" {
			r.RemoteAddr = at
		}
		if r.Header.Get("X-Deadline") != "" {
			r = r.WithContext(&late{r.Context(), s.late})
		}
		h.ServeHTTP(w, r)
	})
}

// late is a context whose deadline expires when the case closes late.
type late struct {
	context.Context
	done chan struct{}
}

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// arrive is for handlers: it reports that one has arrived.
func (s *Stage) arrive() {
	select {
	case s.meet.Held <- struct{}{}:
	case <-s.meet.Over:
	}
}

// wait is for handlers: it blocks until the case lets them continue.
func (s *Stage) wait() {
	select {
	case <-s.meet.Release:
	case <-s.meet.Over:
	}
}

// name is the resource of a route.
func (s *Stage) name(method, pattern string) string {
	if s.server.Pattern != nil {
		pattern = s.server.Pattern(pattern)
	}
	return method + " " + pattern
}

// get makes a request and reads the response.
func (s *Stage) get(path string, header ...string) (*http.Response, string, error) {
	return s.do(context.Background(), http.MethodGet, path, "", header...)
}

func (s *Stage) do(ctx context.Context, method, path, body string, header ...string) (*http.Response, string, error) {
	return s.send(ctx, method, path, strings.NewReader(body), header...)
}

func (s *Stage) send(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return nil, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// until waits for a condition that other goroutines bring about.
func (s *Stage) until(what string, ok func() bool) error {
	if !meet.Until(s.meet.Patience, ok) {
		return fmt.Errorf("condition not met: %s; the tree is\n%s", what, s.tree())
	}
	return nil
}

func (s *Stage) tree() string {
	var text strings.Builder
	_ = s.Guard.Tree().WriteText(&text)
	return text.String()
}

// figures are a resource's counts.
type figures struct{ pass, block, done, failed, long, inFlight int64 }

func (s *Stage) figures(resource string) (f figures) {
	if n, ok := s.Guard.Tree().Resource(resource); ok {
		c := n.Lifetime
		f = figures{c.Pass, c.Block, c.Complete, c.Exception, c.LongLived, n.InFlight}
	}
	return f
}

// counted waits until the resource's counts equal want.
func (s *Stage) counted(resource string, want figures) error {
	err := s.until(fmt.Sprintf("%q has counted %+v", resource, want), func() bool { return s.figures(resource) == want })
	if err != nil {
		return fmt.Errorf("%q has counted %+v: %w", resource, s.figures(resource), err)
	}
	return nil
}
