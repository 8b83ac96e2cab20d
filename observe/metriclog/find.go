package metriclog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The limits on the number of rows.
const (
	usualLimit = 6_000
	maxLimit   = 100_000
)

// Query is the criteria of [Find].
type Query struct {
	From     time.Time // the second that contains From is the first
	To       time.Time // exclusive; zero means no end
	Resource string    // "" means all
	// Limit is the number of rows to find, at most 100,000; 0 means 6,000. The second in which it is
	// reached is returned completely.
	Limit int
}

// Find searches the files of a metric log in a directory; [BaseName] returns the base. It returns
// the rows sorted by second. Processes may write the log at the same time. Lines that can't be read
// are skipped; an error is about the directory or a file.
func Find(dir, base string, q Query) ([]Row, error) {
	if q.Limit <= 0 {
		q.Limit = usualLimit
	}
	q.Limit = min(q.Limit, maxLimit)
	q.Resource = clean(q.Resource)
	files, err := list(dir, base)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, f := range files {
		found, err := q.read(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the oldest may have been removed in the meantime
			return nil, err
		}
		rows = append(rows, found...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return a.At.Compare(b.At) })
	return q.enough(rows), nil
}

// enough returns the wanted number of rows, and the remainder of the last row's second.
func (q *Query) enough(rows []Row) []Row {
	if len(rows) <= q.Limit {
		return rows
	}
	end := q.Limit
	for end < len(rows) && rows[end].At.Equal(rows[q.Limit-1].At) {
		end++
	}
	return rows[:end]
}

// read reads the rows of one file. Its seconds are in ascending order.
func (q *Query) read(path string) (rows []Row, err error) {
	data, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	offset, err := q.offset(data)
	if err != nil {
		return nil, err
	}
	if _, err := data.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(data)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return rows, nil // a line without an end may be incomplete
		}
		if err != nil {
			return nil, err
		}
		row, err := ParseRow(strings.TrimSuffix(line, "\n"))
		switch {
		case err != nil || row.At.Unix() < q.From.Unix() || q.Resource != "" && row.Resource != q.Resource:
			continue
		case !q.To.IsZero() && !row.At.Before(q.To):
			return rows, nil
		case len(rows) >= q.Limit && !row.At.Equal(rows[len(rows)-1].At):
			return rows, nil
		}
		rows = append(rows, row)
	}
}

// entrySize is the size of an index entry.
const entrySize = 16

// offset returns the position in data from which to read the first wanted second: the beginning if the
// index is missing or damaged.
func (q *Query) offset(data *os.File) (int64, error) {
	index, err := os.ReadFile(data.Name() + indexSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	info, err := data.Stat()
	if err != nil {
		return 0, err
	}
	var entries []entry
	last := entry{math.MinInt64, -1}
	for ; len(index) >= entrySize; index = index[entrySize:] {
		e := entry{int64(binary.BigEndian.Uint64(index)), int64(binary.BigEndian.Uint64(index[8:]))}
		if e.second < last.second || e.offset <= last.offset || e.offset > info.Size() {
			return 0, nil
		}
		entries, last = append(entries, e), e
	}
	i := sort.Search(len(entries), func(i int) bool { return entries[i].second >= q.From.Unix() })
	// Ascending seconds and offsets make it likely that all entries are right. The two around the
	// first wanted second must be, or rows would be missing.
	for _, e := range entries[max(i-1, 0):min(i+1, len(entries))] {
		if !e.begins(data, info.Size()) {
			return 0, nil
		}
	}
	if i == 0 { // no earlier entry: the index may be incomplete
		return 0, nil
	}
	return entries[min(i, len(entries)-1)].offset, nil // rows may follow the last entry
}

// entry is an index entry: a second, and the offset of its lines.
type entry struct{ second, offset int64 }

// begins reports whether the lines of the second start at the offset, or the data ends there.
func (e entry) begins(data *os.File, size int64) bool {
	if e.offset == size {
		return true
	}
	var b [32]byte
	n, _ := data.ReadAt(b[:], e.offset)
	at, _, _ := strings.Cut(string(b[:n]), "|")
	ms, err := strconv.ParseInt(at, 10, 64)
	return err == nil && time.UnixMilli(ms).Unix() == e.second
}
