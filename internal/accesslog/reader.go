package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line in bytes.
const MaxLine = 64 << 10

// The number of bad lines that are kept, and the length of their texts.
const (
	maxSamples   = 5
	sampleLength = 200
)

// Reader reads the records of one log.
type Reader struct {
	in     *bufio.Reader
	parser parser
	values int
	record Record
	line   int64 // number of the last line
	stats  Stats
}

// Stats counts the lines of a log.
type Stats struct {
	Lines   int64 // that aren't empty
	Bad     int64 // without a request that could be read
	Samples []Bad // the first bad ones
}

// Bad is a line that could not be read.
type Bad struct {
	Line    int64  // its number
	Problem string // such as "no readable time"
	Text    string // its beginning, as it stands in the log
}

// NewReader returns a reader of a log.
func NewReader(in io.Reader, f Format, o Options) (*Reader, error) {
	if o.Stamp == nil {
		o.Stamp = &f.Stamp
	}
	p, err := f.make(o)
	if err != nil {
		return nil, err
	}
	return &Reader{in: buffered(in), parser: p, values: len(o.Want)}, nil
}

// buffered returns a buffer that holds a line and its end.
func buffered(in io.Reader) *bufio.Reader { return bufio.NewReaderSize(in, MaxLine+2) }

// Stats returns the counts until now.
func (r *Reader) Stats() Stats { return r.stats }

// Next returns the next record, or io.EOF after the last one. Any other error is one of the input.
// The record is valid until the next call.
func (r *Reader) Next() (*Record, error) {
	for {
		line, long, err := readLine(r.in)
		if err != nil {
			return nil, err
		}
		r.line++
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			continue
		}
		r.stats.Lines++
		problem := errLong
		if !long {
			r.record.reset(r.values)
			if problem = r.parser.parse(line, &r.record); problem == nil {
				return &r.record, nil
			}
			if problem == errSkipped {
				continue
			}
		}
		r.stats.Bad++
		if len(r.stats.Samples) < maxSamples {
			r.stats.Samples = append(r.stats.Samples, Bad{r.line, problem.Error(), string(line[:min(len(line), sampleLength)])})
		}
	}
}

// readLine returns a line, or the beginning of a long one, whose rest it skips. The last line may
// have no end.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	line, err = in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line[:sampleLength])
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			return line, true, nil
		}
		return nil, true, err
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return line, false, nil
	}
	return line, false, err
}

// Guess returns the format of a log from its first lines, and a reader that begins with them again.
func Guess(in io.Reader) (f Format, again io.Reader, ok bool, err error) {
	b := buffered(in)
	head, err := b.Peek(MaxLine)
	if err != nil && !errors.Is(err, io.EOF) {
		return f, b, false, err
	}
	for line := range bytes.Lines(head) {
		if f, ok = Detect(line); ok {
			break
		}
	}
	return f, b, ok, nil
}
