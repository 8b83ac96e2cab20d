package metriclog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Row holds the counts of one resource in one second.
type Row struct {
	At        time.Time     // beginning of the second
	Resource  string        // as written in a file; see [Row.Append]
	Pass      int64         // units admitted
	Block     int64         // units refused
	Complete  int64         // units completed, with or without an error
	Exception int64         // units completed with an error
	AvgRT     time.Duration // of completed calls; whole milliseconds in a file
	Occupied  int64         // units of Pass borrowed from an upcoming bucket
	InFlight  int64         // calls in flight when the row was made
	Class     int           // Sentinel's classification: 0
}

const separator = '|'

// Append appends the row as a line of a metric log, without its end; the date is in the location of
// At. In the name, separators, line breaks and unprintable characters become underscores.
func (r Row) Append(b []byte) []byte {
	b = append(strconv.AppendInt(b, r.At.UnixMilli(), 10), separator)
	b = append(r.At.AppendFormat(b, time.DateTime), separator)
	return r.rest(b)
}

// AppendThin appends the row without the date, like the "metric" command of Sentinel's command API.
func (r Row) AppendThin(b []byte) []byte {
	return r.rest(append(strconv.AppendInt(b, r.At.UnixMilli(), 10), separator))
}

func (r Row) rest(b []byte) []byte {
	b = append(b, clean(r.Resource)...)
	rt := r.AvgRT.Round(time.Millisecond).Milliseconds()
	for _, n := range [...]int64{r.Pass, r.Block, r.Complete, r.Exception, rt, r.Occupied, r.InFlight, int64(r.Class)} {
		b = strconv.AppendInt(append(b, separator), n, 10)
	}
	return b
}

// The numbers of columns, with and without the date.
const (
	columns     = 11
	thinColumns = columns - 1
)

// ParseRow parses a line of [Row.Append], [Row.AppendThin] or Sentinel, without its end. The time
// is in UTC.
func ParseRow(line string) (Row, error) {
	parts := strings.Split(line, string(separator))
	if len(parts) == columns {
		if _, err := time.Parse(time.DateTime, parts[1]); err != nil {
			return Row{}, fmt.Errorf("metriclog: %q is not a date", parts[1])
		}
		parts = append(parts[:1], parts[2:]...)
	}
	if len(parts) != thinColumns {
		return Row{}, fmt.Errorf("metriclog: line has %d columns: use %d, or %d without a date", len(parts), columns, thinColumns)
	}
	var numbers [thinColumns]int64
	for i, part := range parts {
		if i == 1 {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return Row{}, fmt.Errorf("metriclog: %q is not a whole number", part)
		}
		numbers[i] = n
	}
	return Row{
		At: time.UnixMilli(numbers[0]).UTC(), Resource: parts[1],
		Pass: numbers[2], Block: numbers[3], Complete: numbers[4], Exception: numbers[5],
		AvgRT: time.Duration(numbers[6]) * time.Millisecond, Occupied: numbers[7], InFlight: numbers[8], Class: int(numbers[9]),
	}, nil
}

// clean returns a name in the form written to a file.
func clean(name string) string { return cleanOf(name, string(separator)) }

// cleanOf returns a name with underscores in place of separators and line breaks.
func cleanOf(name, separators string) string {
	unfit := func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r) && r != ' ' || strings.ContainsRune(separators, r)
	}
	if strings.IndexFunc(name, unfit) < 0 {
		return name
	}
	return strings.Map(func(r rune) rune {
		if unfit(r) {
			return '_'
		}
		return r
	}, name)
}
