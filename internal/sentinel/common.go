package sentinel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// Warning is what a rule says to Sentinel and can't say here, or what it means otherwise.
type Warning struct {
	Name  string // as in "never-opens"
	Field string // of the rule of Sentinel
	Text  string
}

// ID is the id of a rule: text, or a number. Sentinel's dashboard numbers rules, and 0 is none.
type ID string

// SetScalar reads what a file has for an id.
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
	return fmt.Errorf("must be text or a whole number, not %v", v)
}

// Text is text that may be written as a number or a boolean.
type Text string

// SetScalar reads what a file has for a text.
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

// meaning is the meaning of one of Sentinel's numbers.
func meaning[E any](field string, n int, meanings []E) (e E, err error) {
	if n < 0 || n >= len(meanings) {
		return e, spec.BadField(field, "is %d: use a number from 0 to %d", n, len(meanings)-1)
	}
	return meanings[n], nil
}

// period is n units. What is beyond every range stays beyond it, and does not overflow.
func period(n int, unit time.Duration) time.Duration {
	most := int(min(int64(math.MaxInt64/unit), math.MaxInt))
	return time.Duration(min(max(n, -most), most)) * unit
}

// unlessDefault is an interval as a rule would say it: one second goes without saying.
func unlessDefault(interval time.Duration) time.Duration {
	if interval == time.Second {
		return 0
	}
	return interval
}

// patience is a longest wait as a rule would say it: what 0 would say is the default.
func patience(ms int) time.Duration {
	if ms == 0 {
		return 1
	}
	return period(ms, time.Millisecond)
}

// probeTimeout is when a probe is no longer waited for. Sentinel waits without end; here that is
// a minute at least, and the recovery time unless a rule says otherwise.
func probeTimeout(recovery time.Duration) time.Duration {
	if recovery >= time.Minute {
		return 0
	}
	return time.Minute
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// first is the first condition that holds, as an error.
type first struct{ err error }

// bad notes what is wrong with a field, if something is and nothing was before.
func (f *first) bad(is bool, field, format string, args ...any) {
	if is && f.err == nil {
		f.err = spec.BadField(field, format, args...)
	}
}

const needsResource = "is required: Sentinel drops a rule without"
