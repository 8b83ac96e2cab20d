package conformance

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// The parts of requests that clients make up. A number sign stands for a different text each time.
var (
	wildMethods = []string{
		"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
		"PROPFIND", "REPORT", "QUERY", "get", "Connect", "X#",
	}
	wildPaths = []string{
		"/files/x#", "/files/x#/", "/files//x#/", "/files/x#/y", "/files", "/files/", "/users/#", "/users/#/", "/users", "/users/",
		"/ok", "/ok/", "/ok/#", "/OK", "/no/#", "/", "//", "*", "", "#.test:443", "#.test", "?#", "/{name}/", "/files/{name}", "/:name", "/*#",
	}
	wildEnds = []string{
		"", "/", "//", "/.", "/..", "/../x#", "/./", "?q=#", "?/", "%2F", "%2f#", "%2F/", "%2e%2e", "/%2e%2e/#", "%5c", "%00", "%0A#", "%7f",
		"%20", "%20#/", "+", ";v=#", ";/", "%3F", "%25", "%252F", "%ff#", "\xff", "%", "%zz", "#", ":", ":80", "@", "\\", "|", "\t", "%E2%80%AE#/",
	}
	wildStarts = []string{"", "", "", "", "/.", "/..", "/", "//", "/%2e", "/x#/..", "http://#.test", "http://#.test:80", "https://u:p@h#"}
)

// onlyRegistered sends requests of all sorts, and looks for a resource that isn't made of a method
// known to HTTP and a registered pattern.
func (s *Stage) onlyRegistered() error {
	at, err := url.Parse(s.URL)
	if err != nil {
		return err
	}
	var lines []string
	text := func(parts ...string) string {
		return strings.ReplaceAll(strings.Join(parts, ""), "#", fmt.Sprint(len(lines)))
	}
	for _, m := range wildMethods {
		for _, p := range wildPaths {
			lines = append(lines, text(m, " ", p))
		}
	}
	for _, e := range wildEnds {
		lines = append(lines, text("CONNECT /files/x#", e), text("GET /files/x#", e))
	}
	pick := rand.New(rand.NewPCG(1, 2)) // the same requests each time
	one := func(of []string) string { return of[pick.IntN(len(of))] }
	for range 400 {
		lines = append(lines, text(one(wildMethods), " ", one(wildStarts), one(wildPaths), one(wildEnds), one(wildEnds)))
	}
	for _, line := range lines {
		if err := s.write(at.Host, line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return s.registered()
}

// write sends a request that starts with begins, and reads the response. The server may close the
// connection.
func (s *Stage) write(to, begins string) error {
	conn, err := net.DialTimeout("tcp", to, s.meet.Patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(min(s.meet.Patience, time.Minute))); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", begins, to); err != nil {
		return nil // it was closed
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// registered checks that each resource has the name of a route, or that of requests without one.
func (s *Stage) registered() error {
	patterns := []string{nethttp.Unmatched}
	for _, r := range s.routes() {
		_, pattern, _ := strings.Cut(s.name(r.Method, r.Pattern), " ")
		patterns = append(patterns, pattern)
	}
	methods := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, nethttp.OtherMethod,
	}
	for _, n := range s.Guard.Tree().Resources {
		method, pattern, _ := strings.Cut(n.Name, " ")
		if !slices.Contains(methods, method) || !slices.Contains(patterns, pattern) {
			return fmt.Errorf("a client has made the resource %q", n.Name)
		}
	}
	return nil
}
