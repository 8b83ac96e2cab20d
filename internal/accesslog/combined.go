package accesslog

import (
	"bytes"
	"time"
)

// combinedLine parses Common and Combined lines, and the fields that servers append:
//
//	83.149.9.216 - ann [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 203 "referer" "agent"
type combinedLine struct {
	want                 []string
	user, referer, agent int // places in want, or -1
	stamp                Stamp
	appended             func(p *combinedLine, token []byte, r *Record) // a token after the agent
	ended                int64                                          // by $msec; 0 means by the stamp
}

func combined(appended func(*combinedLine, []byte, *Record)) func(Options) (parser, error) {
	return func(o Options) (parser, error) {
		if err := checkWant(o.Want, "user", "referer", "agent"); err != nil {
			return nil, err
		}
		return &combinedLine{
			want: o.Want, user: indexOf(o.Want, "user"), referer: indexOf(o.Want, "referer"), agent: indexOf(o.Want, "agent"),
			stamp: *o.Stamp, appended: appended,
		}, nil
	}
}

func (p *combinedLine) parse(line []byte, r *Record) error {
	// A user's name may have brackets, but no server writes a quote into it.
	close := bytes.Index(line, []byte(`] "`))
	if close < 0 {
		return errForm
	}
	open := bytes.LastIndexByte(line[:close], '[')
	if open < 1 {
		return errForm
	}
	client, rest, ok := bytes.Cut(line[:open], []byte(" "))
	if !ok || len(client) == 0 {
		return errForm
	}
	r.Client = client
	at, coarse, ok := clock(line[open+1 : close])
	if !ok {
		return errStamp
	}
	if p.user >= 0 {
		if _, user, ok := bytes.Cut(rest, []byte(" ")); ok {
			r.Values[p.user] = given(bytes.TrimSpace(user))
		}
	}
	request, line, ok := quoted(line[close+2:])
	if !ok {
		return errForm
	}
	if err := r.request(request); err != nil {
		return err
	}
	code, line := token(line)
	var err error
	if r.Status, err = status(code); err != nil {
		return err
	}
	_, line = token(line) // the bytes
	r.Coarse, p.ended = coarse, 0
	for texts := 0; len(line) > 0; {
		var next []byte
		if line[0] != '"' {
			next, line = token(line)
			if p.appended != nil {
				p.appended(p, next, r)
			}
			continue
		}
		if next, line, ok = quoted(line); !ok { // the line was cut
			break
		}
		if texts == 0 && p.referer >= 0 {
			r.Values[p.referer] = given(next)
		} else if texts == 1 && p.agent >= 0 {
			r.Values[p.agent] = given(next)
		}
		texts++
	}
	r.queries(p.want)
	if p.ended != 0 {
		at, r.Coarse = p.ended, false
	}
	if r.At = at; p.stamp == End {
		r.ended(at)
	}
	return nil
}

// nginx reads $request_time, the first number of seconds with a decimal point, and $msec, the time of
// the end; both may have a name, as in rt=0.012.
func (p *combinedLine) nginx(token []byte, r *Record) {
	if i := bytes.LastIndexByte(token, '='); i >= 0 {
		token = token[i+1:]
	}
	dot := bytes.IndexByte(token, '.')
	if dot <= 0 || digits(token[dot+1:]) < 0 {
		return
	}
	if dot >= len("1000000000") {
		if at, _, ok := timestamp(token); ok && p.ended == 0 {
			p.ended = at
		}
		return
	}
	if took, ok := duration(token, time.Second); ok && r.Took < 0 {
		r.Took = took
	}
}

// apache reads %D, the first whole number: microseconds.
func (p *combinedLine) apache(token []byte, r *Record) {
	if n := digits(token); n >= 0 && r.Took < 0 {
		r.Took, _ = duration(token, time.Microsecond)
	}
}

// token splits a line at the first space.
func token(line []byte) (first, rest []byte) {
	first, rest, _ = bytes.Cut(line, []byte(" "))
	return first, bytes.TrimLeft(rest, " ")
}

// quoted splits a line after a text in quotes, in which a backslash escapes a quote.
func quoted(line []byte) (text, rest []byte, ok bool) {
	if len(line) == 0 || line[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return line[1:i], bytes.TrimLeft(line[i+1:], " "), true
		}
	}
	return nil, nil, false
}

// given returns a value, or nil for the dash that stands for none.
func given(value []byte) []byte {
	if len(value) == 0 || string(value) == "-" {
		return nil
	}
	return value
}
