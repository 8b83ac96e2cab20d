package accesslog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// csvLine parses lines with commas. The columns are numbered from 1, or named by the first line.
// A quoted value must end on its line.
type csvLine struct {
	fields  Fields
	stamp   Stamp
	want    []string
	columns map[string]int // by name; nil until the header was read
	values  [][]byte
}

// maxColumns is the highest number of columns; later ones are ignored.
const maxColumns = 1000

func newCSV(o Options) (parser, error) {
	f, err := ParseFields(o.Fields)
	if err != nil {
		return nil, err
	}
	p := &csvLine{fields: f, stamp: *o.Stamp, want: o.Want}
	names, numbers := 0, make(map[string]int)
	count := func(field string) error {
		if n, err := strconv.Atoi(field); err != nil {
			names++
		} else if numbers[field] = n - 1; n < 1 || n > maxColumns {
			return fmt.Errorf("column %d: use 1 to %d", n, maxColumns)
		}
		return nil
	}
	for _, field := range f.of {
		if err := count(field); err != nil {
			return nil, err
		}
	}
	for _, field := range o.Want {
		if !strings.HasPrefix(field, querying) {
			if err := count(field); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case names == 0:
		p.columns = numbers
	case len(numbers) > 0:
		return nil, fmt.Errorf("--fields has names and numbers of columns: use either")
	}
	return p, nil
}

func (p *csvLine) parse(line []byte, r *Record) error {
	p.values = split(line, p.values[:0])
	if p.columns == nil {
		p.columns = make(map[string]int)
		for i, name := range p.values {
			p.columns[string(bytes.TrimSpace(name))] = i
		}
		return errSkipped
	}
	get := func(field string) []byte {
		if i, ok := p.columns[field]; ok && i < len(p.values) {
			return p.values[i]
		}
		return nil
	}
	if err := p.fields.fill(r, p.stamp, get); err != nil {
		return err
	}
	for i, name := range p.want {
		if !strings.HasPrefix(name, querying) {
			r.Values[i] = get(name)
		}
	}
	r.queries(p.want)
	return nil
}

// split appends the values of a line.
func split(line []byte, values [][]byte) [][]byte {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	for more := true; more && len(values) < maxColumns; {
		if len(line) == 0 || line[0] != '"' {
			var v []byte
			v, line, more = bytes.Cut(line, []byte(","))
			values = append(values, v)
			continue
		}
		end := 1
		doubled := false
		for ; end < len(line); end++ {
			if line[end] == '"' {
				if end+1 == len(line) || line[end+1] != '"' {
					break
				}
				doubled = true
				end++
			}
		}
		v := line[1:min(end, len(line))]
		if doubled {
			v = bytes.ReplaceAll(v, []byte(`""`), []byte(`"`))
		}
		values = append(values, v)
		_, line, more = bytes.Cut(line[min(end, len(line)):], []byte(","))
	}
	return values
}
