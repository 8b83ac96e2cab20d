package flow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Watermark is an amount of memory: a [Share] of the memory limit, or [Bytes]. The zero Watermark
// means none.
type Watermark struct {
	share float64
	bytes int64
}

// Share returns a Watermark that is a share of the memory the process may use: above 0, at most 1.
func Share(of float64) Watermark { return Watermark{share: of} }

// Bytes returns a Watermark of n bytes.
func Bytes(n int64) Watermark { return Watermark{bytes: n} }

// byteUnits lists the units of bytes, as in GOMEMLIMIT.
var byteUnits = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// maxBytes is more than any machine has.
const maxBytes = 1 << 60

// String returns the amount as in a rule file, "" for none.
func (w Watermark) String() string {
	switch v := w.Scalar().(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// Scalar returns the amount as the value in a rule file.
func (w Watermark) Scalar() any {
	switch {
	case w.bytes != 0:
		for _, u := range byteUnits {
			if w.bytes%u.size == 0 {
				return strconv.FormatInt(w.bytes/u.size, 10) + u.name
			}
		}
	case w.share != 0:
		return w.share
	}
	return nil
}

// SetScalar sets the amount from its value in a rule file.
func (w *Watermark) SetScalar(v any) error {
	switch v := v.(type) {
	case string:
		n, ok := parseBytes(v)
		if !ok {
			return fmt.Errorf("%q is not an amount of memory: use a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB", clip(v))
		}
		*w = Bytes(n)
		return nil
	case int64:
		if v != 0 && v != 1 {
			return fmt.Errorf("must be a share from 0 to 1, as in 0.8, or have its unit, as in %dMiB", v)
		}
		*w = Share(float64(v))
		return nil
	case float64:
		*w = Share(v)
		return nil
	}
	return fmt.Errorf("must be a share of the limit, as in 0.8, or bytes with their unit, as in 512MiB, not %v", v)
}

func parseBytes(text string) (int64, bool) {
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseUint(number, 10, 63)
			if err != nil || n > uint64(math.MaxInt64/u.size) {
				return 0, false
			}
			return int64(n) * u.size, true
		}
	}
	return 0, false
}

func clip(text string) string {
	if len(text) > 20 {
		return text[:20] + "..."
	}
	return text
}

// check returns why w is not a valid mark, or "".
func (w Watermark) check() (problem string) {
	switch {
	case w.share != 0 && w.bytes != 0:
		return "is both a share and a number of bytes"
	case w.bytes != 0 && (w.bytes < 0 || w.bytes > maxBytes):
		return fmt.Sprintf("is %d bytes: use more than 0 and at most 1EiB", w.bytes)
	case w.bytes == 0 && !(w.share >= 0 && w.share <= 1):
		return fmt.Sprintf("is %v: use a share above 0 and up to 1, as in 0.8, or bytes", w.share)
	}
	return ""
}

// less reports whether w is below other; both are marks of one kind.
func (w Watermark) less(other Watermark) bool {
	return w.share < other.share || w.bytes < other.bytes
}

// value returns the mark in the unit of its reading.
func (w Watermark) value() float64 {
	if w.bytes != 0 {
		return float64(w.bytes)
	}
	return w.share
}
