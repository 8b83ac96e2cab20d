package shown

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Number formats v in a short form: whole from 10, with one decimal below, and "0" only for zero.
func Number(v float64) string { return string(appendNumber(nil, v)) }

// appendNumber appends the result of [Number].
func appendNumber(to []byte, v float64) []byte {
	switch {
	case v > 0 && v < 0.1:
		return strconv.AppendFloat(to, v, 'g', 1, 64)
	case v < 9.95:
		return bytes.TrimSuffix(strconv.AppendFloat(to, v, 'f', 1, 64), []byte(".0"))
	}
	return strconv.AppendFloat(to, v, 'f', 0, 64)
}

// AppendCount appends a count: exact below 100,000, then rounded, as in 123k or 1.2M.
func AppendCount(to []byte, n int64) []byte {
	if n < 100_000 {
		return strconv.AppendInt(to, n, 10)
	}
	v, units := float64(n)/1000, "kMGTPE"
	for v >= 1000 {
		v, units = v/1000, units[1:]
	}
	return append(appendNumber(to, v), units[0])
}

// Duration formats d in a short form, with two digits or more.
func Duration(d time.Duration) string { return string(AppendDuration(nil, d)) }

// AppendDuration appends the result of [Duration].
func AppendDuration(to []byte, d time.Duration) []byte {
	if d <= 0 {
		return append(to, "0ms"...) // below the clock's resolution
	}
	for _, unit := range [...]struct {
		length time.Duration
		name   string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= unit.length {
			return append(appendNumber(to, float64(d)/float64(unit.length)), unit.name...)
		}
	}
	return append(strconv.AppendInt(to, int64(d), 10), "ns"...)
}

// Millis returns a duration in milliseconds, as in JSON.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Few lists the first few of n texts, and the number of remaining ones.
func Few(n int, text func(i int) string) string {
	const few = 3
	var b strings.Builder
	for i := range min(n, few) {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(text(i))
	}
	if n > few {
		b.WriteString("; and " + strconv.Itoa(n-few) + " more")
	}
	return b.String()
}

// AppendJavaDouble formats a number as Java does: always with a decimal point.
func AppendJavaDouble(to []byte, v float64) []byte {
	begin := len(to)
	to = strconv.AppendFloat(to, v, 'f', -1, 64)
	if !bytes.Contains(to[begin:], []byte(".")) {
		to = append(to, ".0"...)
	}
	return to
}
