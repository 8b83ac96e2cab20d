package httpsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rules"
)

// Config configures the access to a document. The zero value is right for most.
type Config struct {
	// Name identifies the source in logs and errors, and its cache. "" means the URL without secrets:
	// user, password, query and fragment.
	Name string
	// Client sends the requests. It is neither changed nor closed. nil means a default client, which
	// uses the proxies of the environment, waits 3 s for a connection and 5 s for a response to
	// begin, and keeps no connection between requests, so that nothing is left when watching ends.
	//
	// If the client has no CheckRedirect, redirects lead to the same host only, never from https to
	// http, and to 5 at most: the headers of a request, such as Header, are meant for no other
	// host.
	Client *http.Client
	// Header is sent with every request. It is copied.
	Header http.Header
	// Poll is the interval between two requests, from a second to a day, varied by up to a fifth.
	// 0 means 10 seconds. The document is read every 5 minutes in any case.
	Poll time.Duration
	// Timeout limits the duration of one request, from the connection to the last byte, at least 10
	// ms. 0 means 10 seconds.
	Timeout time.Duration
}

const (
	defaultPoll    = 10 * time.Second
	leastPoll      = time.Second
	mostPoll       = 24 * time.Hour
	defaultTimeout = 10 * time.Second
	leastTimeout   = 10 * time.Millisecond
	maxRedirects   = 5
	maxETag        = 1 << 10 // bytes
)

// Source is the document at a URL: a [rules.Source], and a [rules.Writer] if the server understands
// PUT with If-Match. Create one with [New]. It is safe for concurrent use, and starts nothing.
//
// Its revision is the strong or weak ETag from the server or, failing that, Last-Modified or the hash
// of the content.
type Source struct {
	name    string
	url     string
	client  *http.Client
	header  http.Header
	poll    time.Duration
	timeout time.Duration
	hidden  *strings.Replacer // removes secrets from a text

	limit func(context.Context, time.Duration) (context.Context, context.CancelFunc) // replaced in tests
}

// New returns the source of the document at an http or https URL. A path that ends in .json means
// that the document is JSON. New sends no request.
func New(address string, cfg Config) (*Source, error) {
	u, err := url.Parse(address)
	switch {
	// The errors of package url contain parts of the address, which may be parts of a password.
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("httpsource: write an http or https URL with a host, as in https://config.internal/r.yaml")
	case cfg.Poll != 0 && (cfg.Poll < leastPoll || cfg.Poll > mostPoll):
		return nil, fmt.Errorf("httpsource: Poll is %v, the minimum is %v and the maximum %v", cfg.Poll, leastPoll, mostPoll)
	case cfg.Timeout != 0 && cfg.Timeout < leastTimeout:
		return nil, fmt.Errorf("httpsource: Timeout is %v, the minimum is %v", cfg.Timeout, leastTimeout)
	}
	s := &Source{
		name:    cfg.Name,
		url:     address,
		header:  cfg.Header.Clone(),
		poll:    cfg.Poll,
		timeout: cfg.Timeout,
		hidden:  hide(u, cfg.Header),
		limit:   context.WithTimeout,
	}
	if s.header == nil {
		s.header = http.Header{}
	}
	if s.name == "" {
		s.name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	if s.poll == 0 {
		s.poll = defaultPoll
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	client := http.Client{Transport: ownTransport()}
	if cfg.Client != nil {
		client = *cfg.Client
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameHost
	}
	s.client = &client
	return s, nil
}

// ownTransport returns the default client's transport, without anything that outlives a request.
func ownTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  5 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
	}
}

// sameHost is the CheckRedirect of a client without one.
func sameHost(next *http.Request, before []*http.Request) error {
	from, to := before[len(before)-1].URL, next.URL
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case from.Scheme == "https" && to.Scheme != "https":
		return errors.New("redirected from https to another scheme")
	case from.Hostname() != to.Hostname() || from.Scheme == to.Scheme && from.Host != to.Host:
		return errors.New("redirected to another host: set Config.Client.CheckRedirect to allow that")
	}
	return nil
}

// Name returns [Config.Name], or the URL without secrets.
func (s *Source) Name() string { return s.name }

// Next implements [rules.Source]. With a revision it waits for the time of Config.Poll and sends
// one request: if the document is the same the error is [rules.ErrUnchanged].
//
// Status 404 and 410 mean [rules.ErrNotFound]; any other status but 200 and 304 is an error, which has
// the method RetryAfter if the server set a time to retry.
func (s *Source) Next(ctx context.Context, after string) (rules.Document, error) {
	if after != "" {
		timer := time.NewTimer(s.poll - s.poll/5 + rand.N(2*s.poll/5))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return rules.Document{}, ctx.Err()
		case <-timer.C:
		}
	}
	header, conditional := http.Header{}, true
	switch {
	case isETag(after):
		header.Set("If-None-Match", after)
	case after != "" && !strings.HasPrefix(after, hashed):
		header.Set("If-Modified-Since", after)
	default:
		header.Set("Cache-Control", "no-cache") // a proxy's copy may be old
		conditional = false
	}
	var doc rules.Document
	err := s.exchange(ctx, http.MethodGet, header, nil, func(r *http.Response) (err error) {
		switch {
		case r.StatusCode == http.StatusNotModified && conditional:
			return rules.ErrUnchanged
		case r.StatusCode != http.StatusOK:
			return statusOf(r)
		}
		if doc.Data, err = body(r); err == nil {
			doc.Revision = revision(r.Header, doc.Data)
		}
		return err
	})
	if err == nil && doc.Revision == after {
		err = rules.ErrUnchanged // the server ignores conditions
	}
	if err != nil {
		return rules.Document{}, err
	}
	return doc, nil
}

// exchange sends one request and passes on the response.
func (s *Source) exchange(ctx context.Context, method string, header http.Header, data []byte, use func(*http.Response) error) error {
	ctx, cancel := s.limit(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.url, newReader(data))
	if err != nil {
		return s.conceal(err)
	}
	request.Header = s.header.Clone()
	maps.Copy(request.Header, header)
	response, err := s.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		err = use(response)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return s.conceal(err)
}

// body returns the content of a response, up to one byte over the limit.
func body(r *http.Response) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" && !r.Uncompressed {
		return nil, fmt.Errorf("the content is encoded as %.20q, which wasn't requested", encoding)
	}
	if r.ProtoMajor == 1 && r.Close && r.ContentLength < 0 && len(r.TransferEncoding) == 0 && !r.Uncompressed {
		return nil, errors.New("the response ends with the connection, so a truncated one can't be detected: the server must send Content-Length")
	}
	return io.ReadAll(io.LimitReader(r.Body, rules.MaxFileSize+1))
}

// hashed is the prefix of a revision that is a hash.
const hashed = "sha256:"

// revision returns the value that distinguishes the content from others.
func revision(header http.Header, data []byte) string {
	if tag := header.Get("ETag"); isETag(tag) {
		return tag
	}
	if modified := header.Get("Last-Modified"); modified != "" {
		if _, err := http.ParseTime(modified); err == nil {
			return modified
		}
	}
	sum := sha256.Sum256(data)
	return hashed + hex.EncodeToString(sum[:])
}

// isETag reports whether a header value is a usable ETag.
func isETag(tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	return len(tag) <= maxETag && len(opaque) >= 2 && strings.HasPrefix(opaque, `"`) && strings.HasSuffix(opaque, `"`)
}
