package response

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// known bug 294
func TestRetryAfter(t *testing.T) {
	const date = "Tue, 01 Dec 2026 10:00:00 GMT"
	for _, row := range []struct {
		after, limit, date string
		want               time.Duration
	}{
		{after: "30", want: 30 * time.Second},
		{after: "0"}, {after: "-5"}, {after: "+5"}, {after: "1.5"}, {after: "5s"}, {after: "soon"}, {after: " "}, {after: "5, 6"},
		{after: "99999999999999999999999"}, {after: "9223372036854775807"}, {after: "1796119200000"}, // milliseconds since 1970
		{after: "Tue, 01 Dec 2026 10:00:20 GMT", date: date, want: 20 * time.Second},
		{after: "Tuesday, 01-Dec-26 10:00:20 GMT", date: date, want: 20 * time.Second},
		{after: "Tue Dec  1 10:00:20 2026", date: date, want: 20 * time.Second},
		{after: "Tue, 01 Dec 2026 09:00:00 GMT", date: date}, // in the past
		{after: "Tue, 01 Dec 2026 10:00:20 GMT"}, {after: "Tue, 01 Dec 2026 10:00:20 GMT", date: "now"},
		{after: "Tue, 99 Dec 2026 10:00:20 GMT", date: date},
		{limit: `"default";r=0;t=30`, want: 30 * time.Second},
		{limit: `"default"; r=0 ; t=30`, want: 30 * time.Second},
		{limit: `"a";r=5;t=60, "b";r=0;t=30,"c";r=0;t=10`, want: 30 * time.Second},
		{limit: `"a,b;r=0;t=9\"";r=0;t=30;pk=:cHsdsRa894==:`, want: 30 * time.Second},
		{limit: `"default";r=1;t=30`}, {limit: `"default";t=30`}, {limit: `"default";r=0`}, {limit: `"default";r=;t=30`, want: 0},
		{limit: `"default";r=0;t=-1`}, {limit: `"default";r=0;t=18446744074`}, {limit: `"default";r=0;t=1e3`}, {limit: "limit=10, remaining=0, reset=5"}, {limit: `";r=0;t=5`}, {limit: `,,;;==`},
		{after: "10", limit: `"default";r=0;t=30`, want: 10 * time.Second},
		{after: "soon", limit: `"default";r=0;t=30`, want: 30 * time.Second},
	} {
		h := http.Header{}
		for name, value := range map[string]string{"Retry-After": row.after, "RateLimit": row.limit, "Date": row.date} {
			if value != "" {
				h.Set(name, value)
			}
		}
		assert.Equal(t, row.want, RetryAfter(h), "%+v", row)
	}
	assert.Zero(t, RetryAfter(nil))
	assert.Zero(t, RetryAfter(http.Header{"Ratelimit": {strings.Repeat(`"a";r=0;`, 1<<16)}}))
	assert.Equal(t, time.Second, RetryAfter(http.Header{"Ratelimit": {`"a";r=1;t=9`, `"b";r=0;t=1`}}))
}

// No header makes a negative wait or a panic.
func FuzzRetryAfter(f *testing.F) {
	f.Add("30", `"default";r=0;t=30`, "Tue, 01 Dec 2026 10:00:00 GMT")
	f.Add("Tue, 01 Dec 2026 10:00:00 GMT", `"\";r=0`, "")
	f.Fuzz(func(t *testing.T, after, limit, date string) {
		if d := RetryAfter(http.Header{"Retry-After": {after}, "Ratelimit": {limit}, "Date": {date}}); d < 0 {
			t.Error(d)
		}
	})
}
