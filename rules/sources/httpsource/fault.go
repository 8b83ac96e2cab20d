package httpsource

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rules"
)

// statusOf returns the error for a status that the source can't continue with. It omits the
// server's text, which can be anything.
func statusOf(r *http.Response) error {
	err := errors.New(strings.TrimSpace(fmt.Sprintf("status %d %s", r.StatusCode, http.StatusText(r.StatusCode))))
	if r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone {
		err = fmt.Errorf("%w: %w", rules.ErrNotFound, err)
	}
	if wait := retryAfter(r.Header.Get("Retry-After"), time.Now()); wait > 0 {
		err = laterError{err, wait}
	}
	return err
}

// laterError is an error for which the server set a time to retry.
type laterError struct {
	error
	wait time.Duration
}

// RetryAfter returns the time to wait, for package rules.
func (e laterError) RetryAfter() time.Duration { return e.wait }

func (e laterError) Unwrap() error { return e.error }

const longestWait = 24 * time.Hour // prevents overflows

// retryAfter reads the header: seconds, or a date. It returns 0 for anything else.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestWait)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, min(date.Sub(now), longestWait))
	}
	return 0
}

// concealed is an error without secrets. errors.Is and RetryAfter use the original error, which is
// never printed.
type concealed struct {
	text  string
	cause error
}

func (e concealed) Error() string { return e.text }

// Is compares with the original error, without exposing it.
func (e concealed) Is(target error) bool { return errors.Is(e.cause, target) }

// RetryAfter returns the server's time to wait before the next request, or 0.
func (e concealed) RetryAfter() time.Duration {
	if later, ok := errors.AsType[laterError](e.cause); ok {
		return later.wait
	}
	return 0
}

// conceal removes the parts of the request that net/http and transports put into an error.
func (s *Source) conceal(err error) error {
	cause := err
	if outer, ok := errors.AsType[*url.Error](err); ok { // its text begins with the URL
		cause = outer.Err
	}
	text := s.hidden.Replace(cause.Error())
	if len(text) > mostText { // it quotes the response
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return concealed{text, err}
}

const mostText = 1_000 // bytes

const shortestSecret = 4 // characters: hiding shorter ones would ruin every text

// hide returns a replacer for the secrets of an address and of headers.
func hide(u *url.URL, header http.Header) *strings.Replacer {
	var secrets []string
	add := func(texts ...string) {
		for _, text := range texts {
			secrets = append(secrets, text, url.QueryEscape(text), url.PathEscape(text))
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(u.User.Username(), password, u.User.String())
	}
	add(u.RawQuery, u.Fragment)
	for _, values := range u.Query() {
		add(values...)
	}
	for _, values := range header {
		for _, value := range values {
			add(value)
			add(strings.Fields(value)...) // as in Bearer TOKEN
		}
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < shortestSecret || s == "Bearer" || s == "Basic" })
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) // one may be part of another
	var pairs []string
	for _, secret := range slices.Compact(secrets) {
		pairs = append(pairs, secret, "(hidden)")
	}
	return strings.NewReplacer(pairs...)
}
