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
	"strings"
	"time"
)

// How many rows are found at once.
const (
	usualLimit = 6_000
	maxLimit   = 100_000
)

// Query says what [Find] looks for.
type Query struct {
	From     time.Time // the second that this falls in is the first
	To       time.Time // not included; zero is no end
	Resource string    // "" is all
	// Limit is how many rows are enough; the second in which there are so many is told
	// whole. 0 is 6,000, and 100,000 the most.
	Limit int
}

// Find searches the files of a metric log in a directory; see [BaseName] for what base is. It
// returns the rows sorted by their seconds. A log may be written meanwhile, and by several
// processes. Lines that can't be read are passed over; the error is that of the directory or of a
// file.
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
	offset, err := q.offset(path + indexSuffix)
	if err != nil || offset < 0 {
		return nil, err
	}
	if _, err := data.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(data)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return rows, nil // what has no end may be a part of what it was to be
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

// offset is where to begin to read for the first second that was asked for, -1 if the file has
// none so late. A file without an index is read from its begin.
func (q *Query) offset(path string) (int64, error) {
	index, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer index.Close()
	info, err := index.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() == 0 {
		return 0, nil // perhaps the index alone could not be written
	}
	var failed error
	entry := func(i int) (second, offset int64) {
		var b [entrySize]byte
		if _, err := index.ReadAt(b[:], int64(i)*entrySize); err != nil {
			failed = err
		}
		return int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]) & math.MaxInt64)
	}
	entries := int(info.Size() / entrySize)
	i := sort.Search(entries, func(i int) bool {
		second, _ := entry(i)
		return second >= q.From.Unix()
	})
	if i == entries || failed != nil {
		return -1, failed
	}
	_, offset := entry(i)
	return offset, failed
}
