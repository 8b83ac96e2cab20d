package response

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns how long a server wants to be left alone, from the header of an answer with
// status 429 or 503; 0 if it doesn't say, or not intelligibly. Retry-After has seconds or a date,
// which is measured against the answer's own Date, since the clocks may differ; see RFC 9110, 10.2.3.
// Without a valid one, RateLimit fields count whose r is 0: the longest t, in seconds; see
// draft-ietf-httpapi-ratelimit-headers.
func RetryAfter(header http.Header) time.Duration {
	if after := header.Get("Retry-After"); after != "" {
		if d, ok := seconds(after); ok {
			return d
		}
		at, err := http.ParseTime(after)
		now, err2 := http.ParseTime(header.Get("Date"))
		if err == nil && err2 == nil {
			return max(0, at.Sub(now))
		}
	}
	var longest time.Duration
	for _, line := range header["Ratelimit"] {
		for line != "" {
			var member string
			member, line = cutOutside(line, ',')
			longest = max(longest, exhausted(member))
		}
	}
	return longest
}

// exhausted returns the t of a member of a RateLimit field with r=0, or 0.
func exhausted(member string) (t time.Duration) {
	_, params := cutOutside(member, ';')
	none := false
	for params != "" {
		var param string
		param, params = cutOutside(params, ';')
		switch key, value, _ := strings.Cut(strings.Trim(param, " \t"), "="); key {
		case "r":
			n, ok := seconds(value)
			none = ok && n == 0
		case "t":
			t, _ = seconds(value)
		}
	}
	if !none {
		return 0
	}
	return t
}

// seconds parses digits. Numbers too large for a wait, such as the milliseconds since 1970, aren't
// seconds.
func seconds(text string) (time.Duration, bool) {
	const most = 366 * 24 * 60 * 60
	n, err := strconv.ParseUint(text, 10, 32) // which takes no sign
	if err != nil || n > most {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// cutOutside is like strings.Cut, but at a separator outside quotes.
func cutOutside(text string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			quoted = !quoted
		case b == '\\' && quoted:
			i++
		case b == separator && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
