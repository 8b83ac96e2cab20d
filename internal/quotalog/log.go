package quotalog

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

const (
	// grows is the number of bytes from which a log that has doubled is written anew.
	grows = 64 << 10
	// pause is the time after a failed write until the next.
	pause = time.Second
	// longestPeriod is more than the longest period that a meter can have.
	longestPeriod = 70 * 24 * time.Hour
)

// Log is a log of marks. Safe for concurrent use.
//
// Locks are taken in the order io, mu of a Book, mu of an Entry, mu of the Log. None but io is held while
// the disk writes.
type Log struct {
	files   files
	now     func() int64
	report  func(error) // a failure to write
	crashed int64       // time of the latest opening after a crash

	io      shared.Mutex // guards file to broken, and the order of writes
	file    file
	live    int64 // bytes of the file when it was written anew
	size    int64
	broken  bool // the file may end in part of a record
	written bool // closed

	mu      shared.Mutex // guards the fields below
	books   map[string]*Book
	queued  []*Entry
	changed []*Book       // want another slack
	writer  chan struct{} // closed when the writer ends, nil while there is none
	stop    chan struct{} // closed by Close
	closing bool
	manual  bool // tests write
}

// Open opens the log at a path, made if there is none, and locks it. The time that now returns decides
// which periods are over; report gets the errors of later writes.
func Open(path string, now func() int64, report func(error)) (*Log, error) {
	d, err := openDisk(path)
	if err != nil {
		return nil, err
	}
	l, err := open(d, now, report)
	if err != nil {
		_ = d.unlock()
		return nil, err
	}
	return l, nil
}

func open(f files, now func() int64, report func(error)) (*Log, error) {
	l := &Log{files: f, now: now, report: report, crashed: math.MinInt64, books: make(map[string]*Book), stop: make(chan struct{})}
	contents, err := f.read()
	if err != nil {
		return nil, err
	}
	if err := l.load(contents, now()); err != nil {
		return nil, err
	}
	// From here on the log doesn't say that it was closed.
	l.broken = true
	return l, l.Flush()
}

// load reads the contents of a log.
func (l *Log) load(contents []byte, now int64) error {
	if len(contents) == 0 {
		return nil
	}
	rest, ok := strings.CutPrefix(string(contents), magic)
	if !ok {
		return errors.New("the file is no quota log: choose another path")
	}
	clean := false
	skipped := readAll([]byte(rest), func(r record) {
		clean = r.kind == closed
		l.loadRecord(r, now)
	})
	clean = clean && skipped == 0
	if !clean {
		l.crashed = max(l.crashed, now)
	}
	for _, b := range l.books {
		if !clean {
			b.charged = max(b.charged, b.slack.Load())
		}
		if l.crashed < now-int64(longestPeriod) {
			b.charged = 0
		}
		for _, e := range b.entries {
			switch slack := b.slack.Load(); {
			case clean:
			case e.exact:
				e.restored, e.exact = e.restored+slack, false
			default: // it may have been forgotten since, and have taken the slack
				e.restored = max(e.restored, slack)
			}
		}
		b.slack.Store(0) // until its rule is loaded
	}
	return nil
}

func (l *Log) loadRecord(r record, now int64) {
	switch r.kind {
	case crashAt:
		l.crashed = max(l.crashed, r.a)
	case bookOf:
		b := l.book(r.book)
		b.slack.Store(max(0, r.a))
		b.charged = max(0, r.b)
	case markOf, exactOf:
		b := l.book(r.book)
		if now >= r.a {
			delete(b.entries, r.key) // an earlier record is about the same period, or an older one
			return
		}
		b.entries[r.key] = &Entry{book: b, key: r.key, restored: max(0, r.b), until: r.a, exact: r.kind == exactOf, period: never}
	}
}

// book returns a book, made if there is none. It needs mu once the log is open.
func (l *Log) book(name string) *Book {
	b := l.books[name]
	if b == nil {
		b = &Book{log: l, name: name, closed: l.closing, entries: make(map[string]*Entry)}
		l.books[name] = b
	}
	return b
}

// Book returns the book of a name. Its keys may take slack units before they have a mark, once that
// is on the disk; see [Log.Flush].
func (l *Log) Book(name string, slack int64) *Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.book(short(name))
	if slack > b.want {
		b.want = slack
		l.changed = append(l.changed, b)
		l.startLocked()
	}
	return b
}

// queue makes an entry part of the next write.
func (l *Log) queue(e *Entry) {
	l.mu.Lock()
	l.queued = append(l.queued, e)
	l.startLocked()
	l.mu.Unlock()
}

// startLocked starts the writer unless it runs.
func (l *Log) startLocked() {
	if l.writer == nil && !l.closing && !l.manual {
		l.writer = make(chan struct{})
		go l.write(l.writer)
	}
}

// write writes until nothing is left to write.
func (l *Log) write(done chan struct{}) {
	defer close(done)
	for {
		err := l.try(l.Flush)
		l.mu.Lock()
		if l.closing || err == nil && len(l.queued) == 0 && len(l.changed) == 0 {
			l.writer = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if err != nil {
			_ = l.try(func() error { l.report(err); return nil })
			select {
			case <-time.After(pause):
			case <-l.stop:
			}
		}
	}
}

// try runs f, and makes an error of a panic, which only the user's clock or log handler can cause.
func (l *Log) try(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("quota log: the clock panicked: %v", p)
		}
	}()
	return f()
}

// batch collects the bytes of a write, and the marks and slacks that hold once they are on the disk.
type batch struct {
	bytes   []byte
	entries []*Entry
	marks   []mark // of the entries
	books   []*Book
	slacks  []int64
}

// mark is a written mark: its period, and the number of times that the mark had been lowered.
type mark struct{ period, units, lowered int64 }

// Flush writes what is to be written. When it returns nil, that is on the disk.
func (l *Log) Flush() error {
	now := l.now() // custom code; from here on nothing panics
	l.io.Lock()
	defer l.io.Unlock()
	if l.written {
		return nil
	}
	l.mu.Lock()
	entries, books := l.queued, l.changed
	l.queued, l.changed = nil, nil
	all := l.broken || l.size > 2*l.live+grows
	l.mu.Unlock()
	if len(entries) == 0 && len(books) == 0 && !all {
		return nil
	}
	var b batch
	if all {
		entries = l.startAnew(&b, now)
	} else {
		for _, book := range books {
			b.addBook(book)
		}
	}
	for _, e := range entries {
		b.add(e, now)
	}
	if err := l.put(&b, all); err != nil {
		l.broken = true
		l.again(entries, books)
		return fmt.Errorf("quota log: %w", err)
	}
	b.hold()
	return nil
}

// startAnew begins a batch with everything. It returns all entries.
func (l *Log) startAnew(b *batch, now int64) (entries []*Entry) {
	b.bytes = append(b.bytes, magic...)
	if l.crashed > now-int64(longestPeriod) {
		b.bytes = record{kind: crashAt, a: l.crashed}.append(b.bytes)
	}
	for _, book := range l.all() {
		b.addBook(book)
		entries = append(entries, book.all()...)
	}
	return entries
}

func (l *Log) all() []*Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Book, 0, len(l.books))
	for _, b := range l.books {
		all = append(all, b)
	}
	return all
}

// put writes a batch.
func (l *Log) put(b *batch, all bool) error {
	if !all {
		_, err := l.file.Write(b.bytes)
		if err == nil {
			err = l.file.Sync()
		}
		l.size += int64(len(b.bytes))
		return err
	}
	f, err := l.files.replace(b.bytes)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.broken = f, false
	l.size = int64(len(b.bytes))
	l.live = l.size
	return nil
}

// again makes entries and books part of the next write.
func (l *Log) again(entries []*Entry, books []*Book) {
	for _, e := range entries {
		e.mu.Lock()
		if e.want > 0 {
			e.queueLocked()
		}
		e.mu.Unlock()
	}
	l.mu.Lock()
	l.changed = append(l.changed, books...)
	l.mu.Unlock()
}

func (b *batch) addBook(book *Book) {
	l := book.log
	l.mu.Lock()
	slack := book.want
	l.mu.Unlock()
	b.bytes = record{kind: bookOf, book: book.name, a: slack, b: book.charged}.append(b.bytes)
	b.books, b.slacks = append(b.books, book), append(b.slacks, slack)
}

// add adds the record of an entry, unless its period is over.
func (b *batch) add(e *Entry, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queued = false
	r := record{kind: markOf, book: e.book.name, key: e.key, a: e.end, b: e.want}
	switch {
	case e.want > 0:
	case e.period == never, now < e.until && e.floor == e.restored: // as it was found
		r.a, r.b = e.until, e.restored
		if e.exact {
			r.kind = exactOf
		}
	default:
		return
	}
	if now >= r.a {
		return
	}
	b.bytes = r.append(b.bytes)
	if e.want > 0 {
		b.entries, b.marks = append(b.entries, e), append(b.marks, mark{e.period, e.want, e.lowered})
	}
}

// hold lets the marks and slacks hold that are on the disk.
func (b *batch) hold() {
	for i, e := range b.entries {
		e.mu.Lock()
		if m := b.marks[i]; e.period == m.period && e.lowered == m.lowered {
			e.mark, e.recorded = m.units, true
		}
		e.mu.Unlock()
	}
	for i, book := range b.books {
		book.slack.Store(b.slacks[i])
	}
}

// Close writes the use of all keys and closes the log. No key takes units afterwards.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return nil
	}
	l.closing = true
	close(l.stop)
	writer := l.writer
	l.mu.Unlock()
	if writer != nil {
		<-writer
	}
	l.io.Lock()
	defer l.io.Unlock()
	now := l.now()
	var b batch
	for _, book := range l.all() {
		book.mu.Lock()
		book.closed = true
		book.mu.Unlock()
	}
	for _, e := range l.startAnew(&b, now) {
		b.close(e, now)
	}
	b.bytes = record{kind: closed}.append(b.bytes)
	err := l.put(&b, true)
	l.written = true
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return errors.Join(err, l.files.unlock())
}

// close adds the exact use of an entry, and ends its taking.
func (b *batch) close(e *Entry, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	r := record{kind: exactOf, book: e.book.name, key: e.key, a: e.end, b: e.use}
	if e.period == never || now < e.until && e.use == e.restored {
		r.a, r.b = e.until, e.restored
	}
	if now < r.a && r.b > 0 {
		b.bytes = r.append(b.bytes)
	}
}
