package accesslog

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

var (
	errForm     = errors.New("line has another form")
	errStamp    = errors.New("no readable time")
	errRequest  = errors.New("no request line")
	errStatus   = errors.New("no readable status")
	errDuration = errors.New("no readable duration")
	errLong     = errors.New("line is longer than 64 KiB")
	errJSON     = errors.New("not a JSON object")
	errField    = errors.New("a field of --fields is missing")
	errSkipped  = errors.New("") // a line that is no request, such as a header
)

// Times outside of these years are misread.
var (
	earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	latest   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
)

// MaxTook is the longest duration of a request.
const MaxTook = 24 * time.Hour

// digits parses a number without a sign, and returns -1 if it is none.
func digits(text []byte) int {
	if len(text) == 0 || len(text) > 9 {
		return -1
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// clock parses 17/May/2015:10:05:03, with .655 or +0200 or both after it. Without a zone it is UTC.
func clock(text []byte) (at int64, coarse, ok bool) {
	const length = len("17/May/2015:10:05:03")
	if len(text) < length || text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' || text[17] != ':' {
		return 0, false, false
	}
	month := bytes.Index([]byte(months), text[3:6])
	day, year := digits(text[:2]), digits(text[7:11])
	hour, minute, second := digits(text[12:14]), digits(text[15:17]), digits(text[18:20])
	if month < 0 || month%3 != 0 || day < 1 || day > 31 || year < 0 || hour < 0 || hour > 23 ||
		minute < 0 || minute > 59 || second < 0 || second > 60 {
		return 0, false, false
	}
	rest := text[length:]
	coarse, nanos := true, 0
	if len(rest) > 0 && rest[0] == '.' {
		end := 1
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		if nanos, ok = fraction(rest[1:end]); !ok {
			return 0, false, false
		}
		coarse, rest = false, rest[end:]
	}
	zone := 0
	if rest = bytes.TrimPrefix(rest, []byte(" ")); len(rest) > 0 {
		if len(rest) != 5 || rest[0] != '+' && rest[0] != '-' {
			return 0, false, false
		}
		h, m := digits(rest[1:3]), digits(rest[3:5])
		if h < 0 || m < 0 || h > 15 || m > 59 {
			return 0, false, false
		}
		if zone = 3600*h + 60*m; rest[0] == '-' {
			zone = -zone
		}
	}
	t := time.Date(year, time.Month(month/3+1), day, hour, minute, second, nanos, time.UTC).Add(-time.Duration(zone) * time.Second)
	return bounded(t, coarse)
}

// fraction parses the digits after a decimal point, as nanoseconds.
func fraction(text []byte) (int, bool) {
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	n := digits(text)
	for range 9 - len(text) {
		n *= 10
	}
	return n, n >= 0
}

func bounded(t time.Time, coarse bool) (int64, bool, bool) {
	if y := t.Year(); y < 1990 || y >= 2100 {
		return 0, false, false
	}
	return t.UnixNano(), coarse, true
}

// timestamp parses RFC 3339, the form of [clock], or seconds, milliseconds, microseconds or
// nanoseconds since 1970; the size of the number decides.
func timestamp(text []byte) (at int64, coarse, ok bool) {
	if t, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		return bounded(t, !bytes.ContainsAny(text, ".,"))
	}
	if at, coarse, ok = clock(text); ok {
		return at, coarse, ok
	}
	whole, part, pointed := bytes.Cut(text, []byte("."))
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil {
		return 0, false, false
	}
	unit, nanos := int64(time.Second), 0
	switch {
	case n < 1e11:
		if len(part) > 9 {
			part = part[:9]
		}
		if nanos, ok = fraction(part); pointed && len(part) > 0 && !ok {
			return 0, false, false
		}
		coarse = !pointed
	case n < 1e14:
		unit = int64(time.Millisecond)
	case n < 1e17:
		unit = int64(time.Microsecond)
	default:
		unit = 1
	}
	if n <= 0 || n > latest/unit || n*unit < earliest {
		return 0, false, false
	}
	return n*unit + int64(max(nanos, 0)), coarse, true
}

// duration parses a number of units, or a duration such as 1.5ms. Negative ones, which stand for a
// failure, are unknown.
func duration(text []byte, unit time.Duration) (time.Duration, bool) {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		d, err := time.ParseDuration(string(text))
		if err != nil {
			return -1, false
		}
		v, unit = float64(d), 1
	}
	v *= float64(unit)
	switch {
	case math.IsNaN(v):
		return -1, false
	case v < 0:
		return -1, true
	}
	return time.Duration(math.Round(min(v, float64(MaxTook)))), true
}

func status(text []byte) (int, error) {
	if n := digits(text); n >= 100 && n <= 999 {
		return n, nil
	}
	return 0, errStatus
}
