package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

// says checks a response's status.
func says(resp *http.Response, err error, status int) error {
	if err == nil && resp.StatusCode != status {
		err = fmt.Errorf("the status is %s, not %d", resp.Status, status)
	}
	return err
}

// refuses checks the refusal of a second request.
func refuses(status int, retry bool) func(*Stage) error {
	return func(s *Stage) error {
		if _, _, err := s.get("/ok", "X-User", "ann"); err != nil {
			return err
		}
		resp, body, err := s.get("/ok", "X-User", "ann")
		if err := refused(resp, body, err, status, retry); err != nil {
			return err
		}
		if f := s.figures(s.name("GET", "/ok")); f.block == 0 || f.failed != 0 {
			return fmt.Errorf("counted %+v", f)
		}
		return nil
	}
}

// keyed checks that each tenant of each caller has one request, without which it isn't limited.
func keyed(s *Stage) error {
	for _, headers := range [][]string{
		{"X-User", "ann", "X-Tenant", "acme"}, {"X-User", "ann", "X-Tenant", "globex"}, {"X-User", "bob", "X-Tenant", "acme"},
	} {
		if resp, _, err := s.get("/ok", headers...); says(resp, err, http.StatusOK) != nil {
			return fmt.Errorf("%v: %w", headers, says(resp, err, http.StatusOK))
		}
		resp, body, err := s.get("/ok", headers...)
		if err := refused(resp, body, err, http.StatusTooManyRequests, true); err != nil {
			return fmt.Errorf("%v: %w", headers, err)
		}
	}
	for range 2 {
		if resp, _, err := s.get("/ok", "X-User", "ann"); says(resp, err, http.StatusOK) != nil {
			return says(resp, err, http.StatusOK)
		}
	}
	return nil
}

// planned checks that a user has one request, or three under the plan pro, and that a new plan keeps the
// count.
func planned(s *Stage) error {
	for i, x := range []struct {
		user, plan string
		refused    bool
	}{
		{"ann", "", false}, {"ann", "", true}, {"ann", "pro", false}, {"ann", "pro", false}, {"ann", "pro", true}, {"ann", "unknown", true},
		{"bob", "unknown", false}, {"bob", "unknown", true},
	} {
		resp, body, err := s.get("/ok", "X-User", x.user, "X-Plan", x.plan)
		if x.refused {
			err = refused(resp, body, err, http.StatusTooManyRequests, true)
		} else {
			err = says(resp, err, http.StatusOK)
		}
		if err != nil {
			return fmt.Errorf("request %d, %+v: %w", i, x, err)
		}
	}
	return nil
}

// refused checks the response of a refusal.
func refused(resp *http.Response, body string, err error, status int, retry bool) error {
	if err := says(resp, err, status); err != nil {
		return err
	}
	if got := resp.Header.Get("Retry-After"); retry == (got == "") || got == "0" {
		return fmt.Errorf("Retry-After is %q", got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		return fmt.Errorf("Cache-Control is %q", got)
	}
	if got := resp.Header.Get("Content-Type"); got != refusal.ProblemType {
		return fmt.Errorf("the content is of type %q", got)
	}
	var problem struct {
		Title  string
		Status int
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != status || problem.Title == "" {
		return fmt.Errorf("the body is %q: %w", body, err)
	}
	return nil
}

// outcome checks how a response with a status is counted.
func outcome(status int, failed int64) func(*Stage) error {
	return func(s *Stage) error {
		resp, _, err := s.get(fmt.Sprintf("/status?is=%d", status))
		if err := says(resp, err, status); err != nil {
			return err
		}
		return s.counted(s.name("GET", "/status"), figures{pass: 1, done: 1, failed: failed})
	}
}

// holding calls f while a request is held by its handler.
func (s *Stage) holding(path string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		_, _, err := s.get(path)
		done <- err
	}()
	if err := s.meet.Arrived(); err != nil {
		return err
	}
	err := f()
	if err := s.meet.LetGo(); err != nil {
		return err
	}
	return errors.Join(err, <-done)
}

// queued calls f while a request waits for another one on the same path, then lets that one
// continue, and looks at the result of the first, if asked to. A POST keeps its route busy with its
// body.
func (s *Stage) queued(method, path string, f func(leave func()) error, check func(*http.Response, string, error) error) error {
	type outcome struct {
		resp *http.Response
		body string
		err  error
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, second := make(chan outcome, 1), make(chan outcome, 1)
	body, end := io.Pipe()
	ask := func(ctx context.Context, to chan outcome, body io.Reader, header ...string) {
		resp, text, err := s.send(ctx, method, path, body, header...)
		to <- outcome{resp, text, err}
	}
	if method == http.MethodGet {
		go ask(context.Background(), first, nil)
		if err := s.meet.Arrived(); err != nil {
			return err
		}
	} else {
		go ask(context.Background(), first, body)
		if err := s.until("the first request runs", func() bool { return s.figures(s.name(method, path)).inFlight == 1 }); err != nil {
			return err
		}
	}
	var header []string
	if check != nil {
		header = []string{"X-Deadline", "yes"}
	}
	go ask(ctx, second, strings.NewReader("abc"), header...)
	if err := s.until("the second request waits", func() bool { return s.Guard.Tree().Waiting == 1 }); err != nil {
		return err
	}
	err := f(cancel)
	if method == http.MethodGet {
		err = errors.Join(err, s.meet.LetGo())
	}
	_ = end.Close()
	one, two := <-first, <-second
	if check != nil {
		err = errors.Join(err, check(two.resp, two.body, two.err))
	}
	return errors.Join(err, says(one.resp, one.err, http.StatusOK))
}

// watched is a body that records whether it is read.
type watched struct {
	io.Reader
	read atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	w.read.Store(true)
	return w.Reader.Read(p)
}

// cancelWhileRunning makes the client disconnect while the handler runs.
func (s *Stage) cancelWhileRunning(path string, header ...string) error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, _, err := s.do(ctx, http.MethodGet, path, "", header...)
		done <- err
	}()
	defer cancel()
	if err := s.meet.Arrived(); err != nil {
		return err
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the client got: %w", err)
	}
	return nil
}

// breakers has a breaker for every resource, which never opens.
var breakers = api.RuleSet{Breaker: []breaker.Rule{{ID: "watched", Resource: every, Match: api.MatchRegex, Threshold: 1, MinCalls: 1000}}}

// used checks how many tokens the requests of a path have used, and that none are reserved beyond
// that.
func (s *Stage) used(path string, want int64) error {
	if units := s.Guard.UnitStats(s.name("GET", path)); len(units) != 1 || units[0].Total.Used() != want {
		return fmt.Errorf("%s has used %+v, want %d tokens", path, units, want)
	}
	return nil
}

// leftOut checks for one call with an unknown outcome, which the breaker has left out.
func (s *Stage) leftOut(resource string, want figures) error {
	if err := s.counted(resource, want); err != nil {
		return err
	}
	// Nodes count the end of a call before its breaker does.
	return s.until(fmt.Sprintf("the breaker of %q leaves out this call", resource), func() bool {
		for _, b := range s.Guard.Breakers() {
			if b.Resource == resource && (b.Neutral != 1 || b.Calls != 0) {
				return false
			}
		}
		return true
	})
}

// socket makes a handler take over the connection, and checks how many calls are in flight then.
func socket(inFlight int64, want figures) func(*Stage) error {
	return func(s *Stage) error {
		at, err := url.Parse(s.URL)
		if err != nil {
			return err
		}
		conn, err := net.DialTimeout("tcp", at.Host, s.meet.Patience)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(s.meet.Patience)); err != nil {
			return err
		}
		fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", at.Host)
		from := bufio.NewReader(conn)
		resp, err := http.ReadResponse(from, nil)
		if err := says(resp, err, http.StatusSwitchingProtocols); err != nil {
			return err
		}
		fmt.Fprint(conn, "hello\n")
		if err := s.meet.Arrived(); err != nil {
			return err
		}
		line, err := from.ReadString('\n')
		if line != "hello\n" {
			return fmt.Errorf("the echo is %q: %w", line, err)
		}
		name := s.name("GET", "/socket")
		if f := s.figures(name); f.inFlight != inFlight {
			return fmt.Errorf("%d calls are in flight, not %d", f.inFlight, inFlight)
		}
		if err := s.meet.LetGo(); err != nil {
			return err
		}
		return s.counted(name, want)
	}
}

// fewResources checks that there are at most two resources more than routes.
func (s *Stage) fewResources() error {
	if n, most := len(s.Guard.Tree().Resources), len(s.routes())+2; n > most {
		return fmt.Errorf("there are %d resources, more than %d:\n%s", n, most, s.tree())
	}
	return nil
}

// each checks that all spellings of a client are one client: its first request passes, others
// don't.
func (s *Stage) each(header string, clients [][]string) error {
	for _, spellings := range clients {
		for n, as := range spellings {
			want := http.StatusTooManyRequests
			if n == 0 {
				want = http.StatusOK
			}
			resp, _, err := s.get("/ok", header, as)
			if err := says(resp, err, want); err != nil {
				return fmt.Errorf("%s: %s: %w", header, as, err)
			}
		}
	}
	return nil
}
