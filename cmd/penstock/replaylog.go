package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/penstock-go/penstock/internal/accesslog"
	"github.com/penstock-go/penstock/internal/sketch"
	"github.com/penstock-go/penstock/replay"
)

// logs are access logs that are read several times: to learn the names of routes, and to play them.
type logs struct {
	files        []*logFile
	kind         string // "" detects it
	options      accesslog.Options
	namer        *accesslog.Namer
	params       []logField
	origin       *logField
	since, until int64
	window       time.Duration
	placement    accesslog.Placement
	coarse       bool // times are in whole seconds, at least some
	progress     *progress
	show         bool // values of the log
	passes       int  // of the whole work, for progress

	read    int64 // bytes of all passes
	size    int64 // of all files
	clients map[string]client
	seen    logCounts
}

// logCounts are the counts of the last pass.
type logCounts struct {
	late, coarse, untimed, limited, unavailable int64
}

// logFile is one log.
type logFile struct {
	name, path string
	spooled    *os.File // standard input
	size       int64
	format     accesslog.Format
	first      int64 // arrival of the earliest request
	records    int64
	stats      accesslog.Stats
}

// logField is a value of a call.
type logField struct {
	name   string // of the param
	ip     bool   // the client's address
	bits   int    // of the network of an IPv6 address, or 0
	wanted int    // place in Record.Values
}

// client is a client's address and its params, if they depend on nothing else.
type client struct {
	address string
	params  []replay.Param
}

// Bounds of the memory for values.
const (
	maxValue   = 256 // bytes; a hash replaces the end of a longer value
	maxKept    = 1 << 16
	zstdWindow = 128 << 20
)

// field returns the field of a flag: ip, ip/64, or a field of the log.
func (l *logs) field(name, text string) (logField, error) {
	f := logField{name: name}
	network, bits, prefixed := strings.Cut(text, "/")
	if network == "ip" {
		f.ip = true
		n, err := strconv.Atoi(bits)
		if prefixed && (err != nil || n < 1 || n > 128) {
			return f, fmt.Errorf("%q is not a network: use ip/1 to ip/128, such as ip/64", text)
		}
		f.bits = n
		return f, nil
	}
	if f.wanted = slices.Index(l.options.Want, text); f.wanted < 0 {
		f.wanted = len(l.options.Want)
		l.options.Want = append(l.options.Want, text)
	}
	return f, nil
}

// add adds a file. Standard input is copied to a temporary file that only this user can read, and
// that has no name where the system allows it.
func (l *logs) add(c *command, name string) (closed func(), err error) {
	f := &logFile{name: name, path: name}
	closed = func() {}
	if name == stdin {
		f.name = stdinName
		if f.spooled, err = os.CreateTemp("", "penstock-replay-*"); err != nil { // of mode 0600
			return closed, err
		}
		_ = os.Remove(f.spooled.Name()) // while it is open, Windows keeps it
		closed = func() {
			_ = f.spooled.Close()
			_ = os.Remove(f.spooled.Name())
		}
		if f.size, err = io.Copy(f.spooled, c.in); err != nil {
			return closed, err
		}
	} else {
		info, err := os.Stat(f.path)
		if err != nil {
			return closed, err
		}
		if !info.Mode().IsRegular() {
			return closed, fmt.Errorf("%s is not a regular file: use - to read standard input", harmless(name))
		}
		f.size = info.Size()
	}
	l.size += f.size
	l.files = append(l.files, f)
	return closed, nil
}

// counted counts the bytes of a file.
type counted struct {
	io.Reader
	l *logs
}

func (r counted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.l.read += int64(n)
	return n, err
}

// reader opens a file, and decompresses gzip and zstd as it reads.
func (l *logs) reader(f *logFile) (io.Reader, io.Closer, error) {
	var file io.ReadCloser = io.NopCloser(io.NewSectionReader(f.spooled, 0, f.size))
	if f.spooled == nil {
		var err error
		if file, err = os.Open(f.path); err != nil {
			return nil, nil, err
		}
	}
	in := bufio.NewReaderSize(counted{file, l}, 64<<10)
	magic, _ := in.Peek(4)
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", harmless(f.name), err), file.Close())
		}
		return z, file, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", harmless(f.name), err), file.Close())
		}
		return z, closers{z.IOReadCloser(), file}, nil
	}
	return in, file, nil
}

type closers []io.Closer

func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// learn reads all files once: their formats, the time of their first requests, their bad lines and
// the routes. It drops files without requests.
func (l *logs) learn() error {
	var named *logFile
	for _, f := range l.files {
		if err := l.learnFile(f); err != nil {
			return err
		}
		if f.stats.Bad == f.stats.Lines && f.stats.Lines > 0 && named == nil {
			named = f
		}
	}
	total := int64(0)
	for _, f := range l.files {
		total += f.records
	}
	if total == 0 && named != nil && len(named.stats.Samples) > 0 {
		bad := named.stats.Samples[0]
		return fmt.Errorf("%s: no line could be read as %s: %s\n--log sets another kind of log: %s",
			harmless(named.name), named.format.Name, l.sample(bad, mostShown), orList(accesslog.Names()))
	}
	if total == 0 {
		return errors.New("no requests in these logs, or none within --since and --until")
	}
	return nil
}

// sample describes a bad line, with its text only where values may be shown.
func (l *logs) sample(b accesslog.Bad, width int) string {
	text := fmt.Sprintf("line %d: %s", b.Line, b.Problem)
	if l.show {
		text += ": " + safe(b.Text, width)
	}
	return text
}

func (l *logs) learnFile(f *logFile) error {
	in, closer, err := l.reader(f)
	if err != nil {
		return err
	}
	defer closer.Close()
	if l.kind == "" {
		var ok bool
		if f.format, in, ok, err = accesslog.Guess(in); err != nil {
			return fmt.Errorf("%s: %w", harmless(f.name), err)
		} else if !ok {
			if _, err := in.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				return nil // an empty file, as after a rotation
			}
			return fmt.Errorf("%s: unknown kind of log: set --log to %s", harmless(f.name), orList(accesslog.Names()))
		}
	} else if f.format, err = accesslog.Find(l.kind); err != nil {
		return err
	}
	r, err := accesslog.NewReader(in, f.format, l.options)
	if err != nil {
		return err
	}
	f.first = math.MaxInt64
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			f.stats = r.Stats()
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", harmless(f.name), err)
		}
		if rec.At < l.since || rec.At >= l.until {
			continue
		}
		f.records++
		l.coarse = l.coarse || rec.Coarse
		f.first = min(f.first, rec.At)
		if len(rec.Resource) == 0 {
			l.namer.Learn(rec.Method, rec.Path)
		}
		l.report(f.records)
	}
}

// report reports progress now and then.
func (l *logs) report(n int64) {
	if n%1024 == 0 && l.size > 0 {
		l.progress.at(min(1, float64(l.read)/float64(l.size*int64(l.passes))))
	}
}

// calls yields the calls of all files in order. A call that comes later than the window is left out.
// err is set if a file can't be read.
func (l *logs) calls(err *error) func(yield func(replay.Call) bool) {
	return func(yield func(replay.Call) bool) {
		var all []*logSource
		defer func() {
			for _, s := range all {
				s.closeFile()
			}
		}()
		l.seen = logCounts{}
		l.clients = make(map[string]client)
		var sources []accesslog.Source[replay.Call]
		for _, f := range l.files {
			if f.records > 0 {
				s := &logSource{l: l, f: f, sorter: accesslog.NewSorter[replay.Call](l.window)}
				all, sources = append(all, s), append(sources, s)
			}
		}
		*err = accesslog.Spread(l.placement, accesslog.NewMerger(sources).Next, func(e accesslog.Event[replay.Call]) bool {
			e.Value.At = time.Unix(0, e.At)
			return yield(e.Value)
		})
		for _, s := range all {
			l.seen.late += s.sorter.Late()
		}
	}
}

// logSource yields the calls of one file.
type logSource struct {
	l      *logs
	f      *logFile
	r      *accesslog.Reader
	file   io.Closer // nil if it isn't open
	sorter *accesslog.Sorter[replay.Call]
	ended  bool
	n      int64
}

// First returns the arrival of the first call.
func (s *logSource) First() int64 { return s.f.first }

// Next returns the next call.
func (s *logSource) Next() (e accesslog.Event[replay.Call], ok bool, err error) {
	if s.r == nil {
		in, closer, err := s.l.reader(s.f)
		if err != nil {
			return e, false, err
		}
		s.file = closer
		if s.r, err = accesslog.NewReader(in, s.f.format, s.l.options); err != nil {
			return e, false, err
		}
	}
	for {
		if e, ok = s.sorter.Pop(s.ended); ok || s.ended {
			return e, ok, nil
		}
		rec, err := s.r.Next()
		switch {
		case errors.Is(err, io.EOF):
			s.ended = true
			s.closeFile()
		case err != nil:
			return e, false, fmt.Errorf("%s: %w", harmless(s.f.name), err)
		case rec.At >= s.l.since && rec.At < s.l.until:
			s.n++
			s.l.report(s.n)
			s.sorter.Push(accesslog.Event[replay.Call]{At: rec.At, Coarse: rec.Coarse, Value: s.l.call(rec)})
		}
	}
}

func (s *logSource) closeFile() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// call returns the call of a record, which keeps nothing of the record's memory.
func (l *logs) call(r *accesslog.Record) replay.Call {
	call := replay.Call{Took: r.Took, Units: r.Units, Failed: r.Status >= 500}
	if len(r.Resource) > 0 {
		call.Resource = kept(r.Resource)
	} else {
		call.Resource = l.namer.Name(r.Method, r.Path)
	}
	who, known := l.clients[string(r.Client)]
	if !known || len(l.options.Want) > 0 {
		who.address = kept(r.Client)
		who.params = nil
		for _, f := range l.params {
			if v := f.value(r, who.address); v != "" {
				who.params = append(who.params, replay.Param{Name: f.name, Value: v})
			}
		}
		if len(l.clients) == maxKept {
			clear(l.clients)
		}
		l.clients[string(r.Client)] = who
	}
	call.Client, call.Params = who.address, who.params
	if l.origin != nil {
		call.Origin = l.origin.value(r, call.Client)
	} else if len(r.Origin) > 0 {
		call.Origin = kept(r.Origin)
	}
	if r.Coarse {
		l.seen.coarse++
	}
	if r.Took < 0 {
		l.seen.untimed++
	}
	switch r.Status {
	case 429:
		l.seen.limited++
	case 503:
		l.seen.unavailable++
	}
	return call
}

// value returns a value of a call, or "".
func (f logField) value(r *accesslog.Record, address string) string {
	if !f.ip {
		return kept(r.Values[f.wanted])
	}
	if f.bits > 0 {
		if a, err := netip.ParseAddr(address); err == nil && a.Is6() && !a.Is4In6() {
			if network, err := a.Prefix(f.bits); err == nil {
				return network.String()
			}
		}
	}
	return address
}

// kept returns a value within maxValue bytes.
func kept(value []byte) string {
	if len(value) <= maxValue {
		return string(value)
	}
	hash := strconv.FormatUint(sketch.Hash(0, string(value)), 16)
	return string(value[:maxValue-len(hash)-1]) + "~" + hash
}

// lines returns the number of bad lines and of all, and the first bad ones of all files.
func (l *logs) lines() (bad, all int64, samples []badLine) {
	for _, f := range l.files {
		bad, all = bad+f.stats.Bad, all+f.stats.Lines
		for _, s := range f.stats.Samples {
			samples = append(samples, badLine{f.name, s})
		}
	}
	return bad, all, samples[:min(3, len(samples))]
}

type badLine struct {
	file string
	accesslog.Bad
}

// kinds returns the names of the formats.
func (l *logs) kinds() string {
	var all []string
	for _, f := range l.files {
		if f.records > 0 && !slices.Contains(all, f.format.Name) {
			all = append(all, f.format.Name)
		}
	}
	return strings.Join(all, ", ")
}

// moment is a time of a flag, in UTC unless it has a zone.
type moment struct {
	at   int64
	text string
}

func (m *moment) String() string { return m.text }
func (m *moment) Type() string   { return "time" }

func (m *moment) Set(text string) error {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1900 && t.Year() < 2200 {
			*m = moment{t.UnixNano(), text}
			return nil
		}
	}
	return fmt.Errorf("use a time such as 2026-03-01, 2026-03-01T10:00 or 2026-03-01T10:00:00+01:00")
}

// styles are the adapters by the spelling of parameters in their routes.
var styles = map[string]accesslog.Style{
	"nethttp": accesslog.Braces, "chi": accesslog.Braces,
	"gin": accesslog.Colons, "echo": accesslog.Colons, "fiber": accesslog.Colons, "hertz": accesslog.Colons,
}

// routeList reads a list of routes, one on each line; # begins a comment.
func routeList(n *accesslog.Namer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := n.List(line); err != nil {
			return fmt.Errorf("%s:%d: %w", harmless(path), number, err)
		}
	}
	n.ListedOnly()
	return nil
}

func styleNames() []string {
	var all []string
	for name := range styles {
		all = append(all, name)
	}
	slices.SortFunc(all, cmp.Compare[string])
	return all
}
