package accesslog

import (
	"bytes"
	"time"
)

// albLine parses access logs of Amazon's Application Load Balancers. Their fields are separated by
// spaces, and texts with spaces are in quotes.
type albLine struct {
	want          []string
	agent, domain int
}

func newALB(o Options) (parser, error) {
	if err := checkWant(o.Want, "agent", "domain"); err != nil {
		return nil, err
	}
	return &albLine{o.Want, indexOf(o.Want, "agent"), indexOf(o.Want, "domain")}, nil
}

// isALB reports whether a line begins like one of a load balancer: its type, and a time.
func isALB(line []byte) bool {
	kind, rest := token(line)
	switch string(kind) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		at, _ := token(rest)
		_, err := time.Parse(time.RFC3339Nano, string(at))
		return err == nil
	}
	return false
}

// The places of the fields.
const (
	albTime = 1 + iota
	_
	albClient
	_
	albReceive
	albTarget
	albSend
	albStatus
	albRequest = 12
	albAgent   = 13
	albDomain  = 18
	albCreated = 21
	albFields  = 22
)

func (p *albLine) parse(line []byte, r *Record) error {
	var fields [albFields][]byte
	n := 0
	for ; n < len(fields) && len(line) > 0; n++ {
		if line[0] != '"' {
			fields[n], line = token(line)
			continue
		}
		var ok bool
		if fields[n], line, ok = quoted(line); !ok {
			return errForm
		}
	}
	if n <= albAgent {
		return errForm
	}
	ended, _, ok := timestamp(fields[albTime])
	if !ok {
		return errStamp
	}
	if created, _, ok := timestamp(fields[albCreated]); ok { // older logs have none
		r.At = created
		if took := time.Duration(ended - created); took >= 0 {
			r.Took = min(took, MaxTook)
		}
	} else {
		r.Took = 0
		for _, field := range fields[albReceive : albSend+1] {
			took, ok := duration(field, time.Second)
			if !ok {
				return errDuration
			}
			r.Took += max(took, 0) // -1 stands for a part that wasn't reached
		}
		r.Took = min(r.Took, MaxTook)
		r.At = ended - int64(r.Took)
	}
	r.Client = withoutPort(fields[albClient])
	if given(fields[albStatus]) != nil { // none if the client closed the connection
		var err error
		if r.Status, err = status(fields[albStatus]); err != nil {
			return err
		}
	}
	if err := r.request(fields[albRequest]); err != nil {
		return err
	}
	if p.agent >= 0 {
		r.Values[p.agent] = given(fields[albAgent])
	}
	if p.domain >= 0 {
		r.Values[p.domain] = given(fields[albDomain])
	}
	r.queries(p.want)
	return nil
}

// withoutPort returns an address without its port.
func withoutPort(address []byte) []byte {
	i := bytes.LastIndexByte(address, ':')
	switch {
	case i < 0 || digits(address[i+1:]) < 0:
		return address
	case i > 0 && address[0] == '[' && address[i-1] == ']':
		return address[1 : i-1]
	case bytes.IndexByte(address, ':') < i && address[0] != '[': // a bare address of IPv6
		return address
	}
	return address[:i]
}

// haproxyLine parses HAProxy's option httplog, after any prefix of syslog:
//
//	haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"
type haproxyLine struct{ want []string }

func newHAProxy(o Options) (parser, error) {
	return haproxyLine{o.Want}, checkWant(o.Want)
}

func (p haproxyLine) parse(line []byte, r *Record) error {
	open := bytes.Index(line, []byte(" ["))
	if open < 1 {
		return errForm
	}
	before := line[:open]
	r.Client = withoutPort(before[bytes.LastIndexByte(before, ' ')+1:])
	line = line[open+2:]
	close := bytes.Index(line, []byte("] "))
	if close < 0 {
		return errForm
	}
	at, coarse, ok := clock(line[:close])
	if !ok {
		return errStamp
	}
	r.At, r.Coarse = at, coarse
	_, line = token(line[close+2:]) // the frontend
	_, line = token(line)           // backend and server
	timers, line := token(line)
	if total := bytes.TrimPrefix(timers[bytes.LastIndexByte(timers, '/')+1:], []byte("+")); len(total) > 0 {
		if r.Took, ok = duration(total, time.Millisecond); !ok {
			return errDuration
		}
	}
	code, line := token(line)
	if string(code) != "-1" { // the client closed the connection
		var err error
		if r.Status, err = status(code); err != nil {
			return err
		}
	}
	// Captured headers, in braces, have no quotes: HAProxy encodes them as #22.
	quote := bytes.IndexByte(line, '"')
	if quote < 0 {
		return errRequest
	}
	line = line[quote+1:]
	if end := bytes.LastIndexByte(line, '"'); end >= 0 { // missing where syslog has cut the line
		line = line[:end]
	}
	if err := r.request(line); err != nil {
		return err
	}
	r.queries(p.want)
	return nil
}
