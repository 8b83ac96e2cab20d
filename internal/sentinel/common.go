package sentinel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// Warning is a part of a Sentinel rule that is lost or changes its meaning in translation.
type Warning struct {
	Name  string // as in "never-opens"
	Field string // of the Sentinel rule
	Text  string
}

// ID is a rule's id: text or a number. Sentinel's dashboard numbers rules; 0 means none.
type ID string

// SetScalar sets the id to a value from a file.
func (id *ID) SetScalar(v any) error {
	switch v := v.(type) {
	case string:
		*id = ID(v)
		return nil
	case int64:
		if *id = ""; v != 0 {
			*id = ID(strconv.FormatInt(v, 10))
		}
		return nil
	case float64: // as in 3.0
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return id.SetScalar(int64(v))
		}
	}
	return fmt.Errorf("must be a string or a whole number, not %v", v)
}

// Text is text that may be written as a number or a boolean.
type Text string

// SetScalar sets the text to a value from a file.
func (t *Text) SetScalar(v any) error {
	*t = Text(fmt.Sprint(v))
	return nil
}

func matchOf(regex bool) spec.Match {
	if regex {
		return spec.MatchRegex
	}
	return spec.MatchExact
}

// meaning translates a number in a Sentinel rule.
func meaning[E any](field string, n int, meanings []E) (e E, err error) {
	if n < 0 || n >= len(meanings) {
		return e, spec.BadField(field, "is %d: use a number from 0 to %d", n, len(meanings)-1)
	}
	return meanings[n], nil
}

// period is n units, without overflow: a value that is out of range stays out of range.
func period(n int, unit time.Duration) time.Duration {
	most := int(min(int64(math.MaxInt64/unit), math.MaxInt))
	return time.Duration(min(max(n, -most), most)) * unit
}

// unlessDefault returns an interval as written in a rule: 0 for the default, one second.
func unlessDefault(interval time.Duration) time.Duration {
	if interval == time.Second {
		return 0
	}
	return interval
}

// patience returns the longest wait as written in a rule, where 0 means the default.
func patience(ms int) time.Duration {
	if ms == 0 {
		return 1
	}
	return period(ms, time.Millisecond)
}

// probeTimeout returns the time after which a probe is given up: the recovery time by default, at
// least a minute. Sentinel waits forever.
func probeTimeout(recovery time.Duration) time.Duration {
	if recovery >= time.Minute {
		return 0
	}
	return time.Minute
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// first keeps the first error.
type first struct{ err error }

// bad records a problem with a field if is is true and there is no earlier error.
func (f *first) bad(is bool, field, format string, args ...any) {
	if is && f.err == nil {
		f.err = spec.BadField(field, format, args...)
	}
}

const needsResource = "is required: Sentinel drops a rule without one"
