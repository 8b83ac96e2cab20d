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

// How many rows are found at a time.
const (
	usualLimit = 6_000
	maxLimit   = 100_000
)

// Query says what [Find] looks for.
type Query struct {
	From     time.Time // the second that this falls in is the first
	To       time.Time // not included; zero is no end
	Resource string    // "" is all
	// Limit is how many rows are enough; the second in which that is reached is returned whole. 0
	// means 6,000; at most 100,000.
	Limit int
}

// Find searches the files of a metric log in a directory; see [BaseName] for what base is. It
// returns the rows sorted by their seconds. A log may be written meanwhile, and by several
// processes. Lines that can't be read are skipped; an error is about the directory or a file.
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed since, since it was the oldest
			return nil, err
		}
		rows = append(rows, found...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return a.At.Compare(b.At) })
	return q.enough(rows), nil
}

// enough is as many rows as were asked for, and the rest of the last one's second.
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

// read reads the rows of one file, whose seconds ascend.
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
			return rows, nil // a line without an end may be only part of what was to be written
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

// entrySize is what a second takes in an index.
const entrySize = 16

// offset is where in data to begin to read for the first second that was asked for. Without an index, or with one that is damaged, that is the begin.
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
	// That seconds and offsets ascend makes it likely that all are right. Those between which the
	// first second lies must be, or rows would be missing.
	for _, e := range entries[max(i-1, 0):min(i+1, len(entries))] {
		if !e.begins(data, info.Size()) {
			return 0, nil
		}
	}
	if i == 0 { // or there are no entries: it may be that only the index could not be written
		return 0, nil
	}
	return entries[min(i, len(entries)-1)].offset, nil // after the last entry there may be more, if some are lost
}

// entry is an index's entry for a second: where its lines begin.
type entry struct{ second, offset int64 }

// begins reports whether the lines of the second begin there, or the data ends there.
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
