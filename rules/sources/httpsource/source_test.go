package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		address string
		cfg     Config
		why     string
	}{
		{"", Config{}, "write an http or https URL with a host"},
		{"rules.yaml", Config{}, "write an http or https URL with a host"},
		{"file:///etc/rules.yaml", Config{}, "write an http or https URL with a host"},
		{"https:///rules.yaml", Config{}, "write an http or https URL with a host"},
		{"http://user:canary%zz@host/", Config{}, "write an http or https URL with a host"},
		{"http://user:cana/ry@host/", Config{}, "write an http or https URL with a host"},
		{"http://host", Config{Poll: time.Millisecond}, "Poll is 1ms, the minimum is 1s and the maximum 24h0m0s"},
		{"http://host", Config{Poll: 1 << 62}, "and the maximum 24h0m0s"},
		{"http://host", Config{Poll: -1}, "Poll is -1ns, the minimum is 1s"},
		{"http://host", Config{Timeout: time.Millisecond}, "Timeout is 1ms, the minimum is 10ms"},
	} {
		s, err := New(c.address, c.cfg)
		require.ErrorContains(t, err, c.why, c.address)
		assert.NotContains(t, err.Error(), "cana")
		assert.Nil(t, s)
	}
}

// The name of a source contains no secrets, unless Config.Name does.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		address, name, want string
	}{
		{"https://store:8443/a%20b/rules.json", "", "https://store:8443/a%20b/rules.json"},
		{"https://me:secret@store/rules.yaml?X-Amz-Signature=secret#secret", "", "https://store/rules.yaml"},
		{"https://store", "orders", "orders"},
	} {
		s, err := New(c.address, Config{Name: c.name})
		require.NoError(t, err)
		assert.Equal(t, c.want, s.Name())
	}
}

// roundTrip is a Transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// No error contains secrets from any source.
// known bug 154
func TestErrorsHoldNoSecrets(t *testing.T) {
	cause := errors.New("cause")
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("sending %s with %v to %s by %s: %w", r.URL, r.Header, r.URL.User, url.QueryEscape(r.URL.Query().Get("token")), cause)
	})}
	s, err := New("http://user-canary:pass%20canary@host/?token=query%2Fcanary&x=1", Config{
		Client: client, Header: http.Header{"Authorization": {"Bearer header-canary"}},
	})
	require.NoError(t, err)
	_, err = s.Next(t.Context(), "")
	require.ErrorIs(t, err, cause)
	for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v %#v", err, err, err.Error())} {
		assert.NotContains(t, text, "canary")
		assert.Contains(t, text, "(hidden)")
	}
	assert.NoError(t, errors.Unwrap(err))
	var outer *url.Error
	assert.False(t, errors.As(err, &outer), "it has the URL")
}

// The caller's client is used, but not changed.
func TestClientOfTheCaller(t *testing.T) {
	used := 0
	client := &http.Client{Timeout: time.Minute, Transport: &counted{&used}}
	before := *client
	s, err := New("http://host/rules.yaml", Config{Client: client})
	require.NoError(t, err)
	doc, err := s.Next(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, ruleFile(2), doc.Data)
	assert.Equal(t, 1, used)
	assert.Nil(t, client.CheckRedirect)
	assert.Equal(t, before.Timeout, client.Timeout)
	assert.Same(t, before.Transport, client.Transport)
}

// counted is a Transport that must not be closed.
type counted struct{ n *int }

func (c *counted) CloseIdleConnections() { panic("the caller's") }

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	*c.n++
	w := httptest.NewRecorder()
	good(2)(w, r)
	return w.Result(), nil
}

// An error that quotes a server's response is truncated.
func TestErrorsAreBounded(t *testing.T) {
	s, err := New("http://host/rules.yaml", Config{Client: &http.Client{Transport: quoting{}}})
	require.NoError(t, err)
	_, err = s.Next(t.Context(), "")
	require.ErrorContains(t, err, "malformed: xxx")
	assert.Less(t, len(err.Error()), 1_100)
}

// quoting is a Transport that doesn't understand a response.
type quoting struct{}

func (quoting) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("malformed: " + strings.Repeat("x", 10_000))
}

// Redirects lead to the same host, and never away from TLS, unless the caller's CheckRedirect allows
// it.
func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		from, to string
		why      string
	}{
		{"http://host/a", "http://host/b?c=d", ""},
		{"http://host/a", "https://host/b", ""},
		{"https://host/a", "https://host/b", ""},
		{"https://host/a", "http://host/b", "redirected from https to another scheme"},
		{"http://host/a", "http://host:8080/b", "redirected to another host"},
		{"http://host/a", "http://host.example/b", "redirected to another host"},
	} {
		var asked []string
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			w := httptest.NewRecorder()
			if len(asked) == 1 {
				http.Redirect(w, r, c.to, http.StatusTemporaryRedirect)
			} else {
				good(2)(w, r)
			}
			return w.Result(), nil
		})}
		s, err := New(c.from, Config{Client: client})
		require.NoError(t, err)
		_, err = s.Next(t.Context(), "")
		if c.why == "" {
			require.NoError(t, err)
			require.Equal(t, []string{c.from, c.to}, asked)
			continue
		}
		require.ErrorContains(t, err, c.why)
		require.Equal(t, []string{c.from}, asked)

		asked = nil
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
		s, err = New(c.from, Config{Client: client})
		require.NoError(t, err)
		_, err = s.Next(t.Context(), "")
		require.NoError(t, err)
	}
}

// Documents are distinguished by ETag, Last-Modified, or the content.
func TestRevisions(t *testing.T) {
	const date = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, c := range []struct {
		name             string
		header           http.Header
		revision         string
		condition, value string
	}{
		{"ETag", http.Header{"Etag": {`"1"`}, "Last-Modified": {date}}, `"1"`, "If-None-Match", `"1"`},
		{"weak ETag", http.Header{"Etag": {`W/"1"`}}, `W/"1"`, "If-None-Match", `W/"1"`},
		{"Last-Modified", http.Header{"Last-Modified": {date}}, date, "If-Modified-Since", date},
		{"ETag without quotes", http.Header{"Etag": {"1"}, "Last-Modified": {date}}, date, "If-Modified-Since", date},
		{"nonsense", http.Header{"Etag": {`"` + strings.Repeat("x", 2000) + `"`}, "Last-Modified": {"yesterday"}}, "sha256:", "Cache-Control", "no-cache"},
		{"nothing", nil, "sha256:", "Cache-Control", "no-cache"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last http.Header
				n := 2
				s, err := New("http://host/rules.yaml", Config{Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					last = r.Header
					w := httptest.NewRecorder()
					maps.Copy(w.Header(), c.header)
					_, _ = w.Write(ruleFile(n))
					return w.Result(), nil
				})}})
				require.NoError(t, err)
				doc, err := s.Next(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, "no-cache", last.Get("Cache-Control"))
				assert.True(t, strings.HasPrefix(doc.Revision, c.revision), doc.Revision)
				began := time.Now()
				_, err = s.Next(t.Context(), doc.Revision)
				require.ErrorIs(t, err, rules.ErrUnchanged, "the server looks at no conditions")
				assert.Equal(t, c.value, last.Get(c.condition))
				assert.GreaterOrEqual(t, time.Since(began), 8*time.Second)
				n = 3
				if c.header.Get("ETag") == c.revision || c.header.Get("Last-Modified") == c.revision {
					return // and reports that it is the same
				}
				doc, err = s.Next(t.Context(), doc.Revision)
				require.NoError(t, err)
				assert.Equal(t, ruleFile(3), doc.Data)
			})
		})
	}
}

// Next returns when its context ends, even while it waits for the next poll.
func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := New("http://host", Config{Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			t.Error("asked")
			return nil, io.EOF
		})}})
		require.NoError(t, err)
		_, err = s.Next(ctx, "x")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"-5":                            0,
		"0":                             0,
		"120":                           2 * time.Minute,
		"4000000000":                    longestWait,
		"99999999999999999999":          0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:03:05 GMT": 0,
		"Fri, 02 Jan 2099 03:03:05 GMT": longestWait,
	} {
		assert.Equal(t, want, retryAfter(value, now), value)
	}
}

// store is a server that keeps one document, and checks the conditions of PUT.
type store struct {
	mu      sync.Mutex
	data    []byte
	version int
	quiet   bool // it doesn't return the ETag of a written document
	puts    int
	header  http.Header // of the last PUT
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tag := ""
	if s.version > 0 {
		tag = fmt.Sprintf(`"v%d"`, s.version)
	}
	if r.Method == http.MethodGet {
		if tag == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", tag)
		_, _ = w.Write(s.data)
		return
	}
	s.puts++
	s.header = r.Header.Clone()
	if match := r.Header.Get("If-Match"); match != "" && match != tag || r.Header.Get("If-None-Match") == "*" && tag != "" {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	s.data, _ = io.ReadAll(r.Body)
	s.version++
	if !s.quiet {
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, s.version))
	}
	w.WriteHeader(http.StatusNoContent)
}

// A document is created if there is none, replaced if it has the revision that was read, and
// otherwise left alone.
func TestWrite(t *testing.T) {
	kept := &store{}
	server := httptest.NewServer(kept)
	defer server.Close()
	s, err := New(server.URL+"/rules.yaml", Config{Header: http.Header{"X-Token": {"t"}}})
	require.NoError(t, err)
	_, err = s.Next(t.Context(), "")
	require.ErrorIs(t, err, rules.ErrNotFound)

	_, err = s.Write(t.Context(), []byte("flow: 1"), "")
	require.EqualError(t, err, server.URL+"/rules.yaml:1:7: flow: must be a list of rules, not 1")
	_, err = s.Write(t.Context(), nil, "")
	require.ErrorContains(t, err, "holds no rules")
	_, err = s.Write(t.Context(), ruleFile(1), `W/"1"`)
	require.ErrorContains(t, err, "the document has no strong ETag")
	_, err = s.Write(t.Context(), ruleFile(1), "sha256:00")
	require.ErrorContains(t, err, "the document has no strong ETag")
	require.Zero(t, kept.puts, "an invalid document is not sent")

	first, err := s.Write(t.Context(), ruleFile(1), "")
	require.NoError(t, err)
	assert.Equal(t, "application/yaml", kept.header.Get("Content-Type"))
	assert.Equal(t, "t", kept.header.Get("X-Token"))
	doc, err := s.Next(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, rules.Document{Data: ruleFile(1), Revision: first}, doc)

	_, err = s.Write(t.Context(), ruleFile(2), "")
	require.ErrorIs(t, err, rules.ErrConflict)
	second, err := s.Write(t.Context(), ruleFile(2), first)
	require.NoError(t, err)
	_, err = s.Write(t.Context(), ruleFile(3), first)
	require.ErrorIs(t, err, rules.ErrConflict)
	require.Equal(t, 4, kept.puts, "a conflict is tried once")
	require.Equal(t, ruleFile(2), kept.data)

	kept.quiet = true
	third, err := s.Write(t.Context(), ruleFile(3), second)
	require.NoError(t, err)
	require.Empty(t, third)
}

// A server that responds but doesn't write is an error.
func TestWriteFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		why   string
	}{
		{"401", status(401), "status 401 Unauthorized"},
		{"405", status(405), "status 405 Method Not Allowed"},
		{"409", status(409), "the document has changed since it was read: status 409 Conflict"},
		{"500", status(500), "status 500 Internal Server Error"},
		{"202", status(202), "status 202 Accepted"},
		{"a redirect to a page", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				http.Redirect(w, r, "/done", http.StatusSeeOther)
			}
		}, "the document was not written"},
		{"no answer", raw(""), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(c.serve)
			listening := httptest.NewServer(server)
			defer listening.Close()
			s, err := New(listening.URL, Config{})
			require.NoError(t, err)
			_, err = s.Write(t.Context(), ruleFile(1), "")
			require.Error(t, err)
			require.ErrorContains(t, err, c.why)
			puts := 0
			for len(server.asked) > 0 {
				if (<-server.asked).Method == http.MethodPut {
					puts++
				}
			}
			require.Equal(t, 1, puts)
		})
	}
}

// Many writers increment a number, each by reading, adding and writing: no increment is lost.
func TestWritersAtOnce(t *testing.T) {
	kept := &store{}
	server := httptest.NewServer(kept)
	defer server.Close()
	s, err := New(server.URL+"/rules.yaml", Config{})
	require.NoError(t, err)
	_, err = s.Write(t.Context(), ruleFile(1), "")
	require.NoError(t, err)
	const writers, each = 4, 5
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for done := 0; done < each; {
				doc, err := s.Next(t.Context(), "")
				if !assert.NoError(t, err) {
					return
				}
				set, err := rules.Parse("", doc.Data)
				if !assert.NoError(t, err) {
					return
				}
				switch _, err = s.Write(t.Context(), ruleFile(whole(set)+1), doc.Revision); {
				case err == nil:
					done++
				case !assert.ErrorIs(t, err, rules.ErrConflict):
					return
				}
			}
		})
	}
	running.Wait()
	require.Equal(t, ruleFile(1+writers*each), kept.data)
}
