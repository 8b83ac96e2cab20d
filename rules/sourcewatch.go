package rules

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"
)

// SourceOptions configure the watching of a source. The zero value is ready to use.
type SourceOptions struct {
	// Cache is the path of a file that keeps the last accepted rules, for a start while the source
	// is unreachable. Its directory must exist; the file is created, readable only by its owner.
	// Each source, and each process, needs its own. "" means none.
	Cache string
	// StartEmpty makes WatchSource succeed if neither source nor cache has rules. Until the source
	// has some, only the rules of the other sources are in force.
	StartEmpty bool
}

// The timing of requests to a source.
const (
	coldStart    = 5 * time.Second        // at the start, before the cache is used
	longestRead  = 30 * time.Second       // for a response that is due immediately
	rereadAfter  = 5 * time.Minute        // a read without a revision; ± 10 %
	leastBetween = time.Second            // requests, even if the source responds faster
	firstBackOff = 100 * time.Millisecond // up to this after a first failure, then doubling
	mostBackOff  = 30 * time.Second       // up to this
	mostCold     = time.Second            // up to this while a program waits for its start
	mostAsked    = 5 * time.Minute        // the longest that a source may ask for
	healthyAfter = time.Minute            // without a failure, the next is a first one
	maxReasons   = 10                     // reported before rules are loaded again
)

var (
	errNoCache  = errors.New("and there is no cache")
	errNotAsked = errors.New("the source reports an unchanged document although no revision was sent")
)

// sourceWatch is a watched source. It is used by the goroutine that declares it, then by the
// goroutine that starts.
type sourceWatch struct {
	member   *member
	name     pieceName
	source   Source
	after    string          // the revision to send; "" reads any document
	seen     hash            // of the last content tried; none after a failure to get any
	reported map[string]bool // failures reported since rules were loaded
	reread   time.Time       // when to ask without a revision

	failures int       // without a healthy time in between
	healthy  time.Time // start of the time without failures; zero after one

	cache  *cache // nil if there is none
	kept   hash   // hash of the cache's content
	unkept bool   // the last write of the cache failed
}

// WatchSource declares a source of the rules, by its name. It loads its rules now, and again
// whenever they change, until ctx ends or the Loader is closed.
//
// Rules are only ever replaced by valid ones. While the source is unreachable or refuses to respond,
// and while its document is missing, empty, wrong or refused, its last good rules stay: only `flow:
// []`, or another empty list, removes all. Each such reason is reported once until rules are loaded
// again. The age of the rules is shown as Confirmed in [Status]; no decision depends on it.
//
// After a failure the source is retried within 100 ms, then 200 ms and so on up to 30 s, at random
// times, so that many programs don't return at the same time. The backoff starts over after a minute
// without failures. Every 5 minutes the document is read regardless of its revision. The source is
// asked at most once a second, even if it responds faster.
//
// The first load gives the source 5 s to respond. A missing or wrong document is a response. If that
// load fails, the rules come from the Cache file, and their age is reported; without a cache,
// WatchSource returns the error and leaves nothing running, unless StartEmpty is set.
//
// A panic of the source is a failure like any other.
func (l *Loader) WatchSource(ctx context.Context, source Source, opts SourceOptions) error {
	name, err := nameOf(source)
	if err != nil {
		return err
	}
	m, err := l.join(ctx, []string{name})
	if err != nil {
		return err
	}
	w := &sourceWatch{member: m, name: pieceName{0, name}, source: source, reported: map[string]bool{}}
	if opts.Cache != "" {
		w.cache = &cache{path: opts.Cache, source: name, disk: realDisk{}}
		removeLeftovers(opts.Cache)
	}
	if err := w.loadFirst(opts.StartEmpty); err != nil {
		m.leave()
		return err
	}
	go w.run()
	return nil
}

func nameOf(source Source) (name string, err error) {
	if p := survive(func() { name = source.Name() }); p != nil { // also of nil
		return "", fmt.Errorf("the name of a source of rules: panic: %v", p)
	}
	if name == "" {
		return "", errors.New("a source of rules has no name")
	}
	return printable(name), nil
}

// loadFirst loads the rules for the first time: from the source or, failing that, from the cache.
func (w *sourceWatch) loadFirst(startEmpty bool) error {
	doc, failure := w.loadCold()
	if failure == nil {
		return nil
	}
	if w.member.gone() {
		return w.member.ctx.Err()
	}
	err := errNoCache
	if w.cache != nil {
		err = w.loadCache()
	}
	switch {
	case w.member.gone():
		return w.member.ctx.Err()
	case err == nil:
	case !startEmpty:
		return fmt.Errorf("%w; %w", failure, err)
	default:
		if w.cache != nil && !errors.Is(err, fs.ErrNotExist) {
			w.warn("penstock: the cache of a source can't be used", err)
		}
		if err := w.member.begin(); err != nil {
			return err
		}
	}
	if doc == nil {
		w.tell(news{pieceName: w.name, taken: time.Now(), err: failure})
		return nil
	}
	w.seen = hash{} // when handed over again it is reported, and tried again when others have changed
	w.take(*doc)
	return nil
}

// loadCold loads the source's rules if it responds soon. On error it returns the document to blame, if
// any.
func (w *sourceWatch) loadCold() (blamed *Document, failure error) {
	late := time.Now().Add(coldStart)
	for {
		doc, err := w.ask("", time.Until(late))
		if err == nil {
			if err = w.member.begin(w.read(doc)); err == nil {
				w.keep(doc)
			}
			return &doc, err
		}
		if failure == nil || !errors.Is(err, context.DeadlineExceeded) { // a response explains more than a timeout
			failure = err
		}
		delay := max(min(w.backOff(), mostCold), askedFor(err))
		if errors.Is(err, ErrNotFound) || time.Until(late) <= delay || !sleep(w.member.ctx, delay) {
			return nil, failure
		}
	}
}

// loadCache loads the rules in the cache.
func (w *sourceWatch) loadCache() error {
	kept, err := w.cache.read()
	if err != nil {
		return err
	}
	n := w.parse(kept.Document)
	n.cached = kept.saved
	if err := w.member.begin(n); err != nil {
		return fmt.Errorf("the cache %s: %w", w.cache.path, err)
	}
	return nil
}

// run asks the source again and again.
func (w *sourceWatch) run() {
	defer w.member.leave()
	for sleep(w.member.ctx, w.look()) {
	}
}

// look asks the source once, processes its response, and returns the time until the next request.
func (w *sourceWatch) look() time.Duration {
	began := time.Now()
	after, limit := w.after, w.reread.Sub(began)
	if limit <= 0 || after == "" {
		after, limit = "", longestRead
	}
	doc, err := w.ask(after, limit)
	switch {
	case w.member.gone():
		return 0
	case err == nil:
		w.take(doc)
	case errors.Is(err, ErrUnchanged):
		w.member.confirm(w.name, w.after)
	case after != "" && !time.Now().Before(w.reread): // it is time for an unconditional read
		return 0
	default:
		w.after, w.seen = "", hash{} // the next document is handed over in any case
		w.tell(news{pieceName: w.name, taken: time.Now(), err: err})
		return max(w.backOff(), askedFor(err))
	}
	if w.healthy.IsZero() {
		w.healthy = time.Now()
	}
	return leastBetween - time.Since(began)
}

// ask asks the source. A panic is an error like any other.
func (w *sourceWatch) ask(after string, limit time.Duration) (doc Document, err error) {
	ctx, cancel := context.WithTimeout(w.member.ctx, limit)
	defer cancel()
	if p := survive(func() {
		doc, err = w.source.Next(ctx, after)
		_, _ = errors.Is(err, ErrUnchanged), askedFor(err) // methods of the source's error, such as a nil pointer
	}); p != nil {
		err = fmt.Errorf("panic: %v", p)
	}
	if after == "" && errors.Is(err, ErrUnchanged) {
		err = errNotAsked
	}
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", w.name.name, err)
	}
	return doc, nil
}

// take passes on a document, unless it is the same as the last one.
func (w *sourceWatch) take(doc Document) {
	if hashOf(doc.Data) == w.seen {
		w.noted(doc)
		w.member.confirm(w.name, doc.Revision)
	} else if n := w.read(doc); n.err != nil {
		w.tell(n)
	} else if w.member.take(n) == nil {
		clear(w.reported)
	}
	w.keep(doc)
}

// noted records that a document was read.
func (w *sourceWatch) noted(doc Document) {
	w.seen, w.after = hashOf(doc.Data), doc.Revision
	w.reread = time.Now().Add(rereadAfter - rereadAfter/10 + rand.N(rereadAfter/5))
}

// read records that a document was read, and parses it.
func (w *sourceWatch) read(doc Document) news {
	w.noted(doc)
	return w.parse(doc)
}

func (w *sourceWatch) parse(doc Document) news {
	n := news{pieceName: w.name, taken: time.Now(), hash: hashOf(doc.Data), revision: doc.Revision}
	n.parsed, n.places, n.err = parse(w.name.name, doc.Data, ParseOptions{})
	return n
}

// keep writes a document to the cache if it is in force and not there yet.
func (w *sourceWatch) keep(doc Document) {
	h := hashOf(doc.Data)
	if w.cache == nil || w.kept == h || !w.member.holds(w.name, h) {
		return
	}
	err := w.cache.write(cached{doc, time.Now()})
	if err == nil {
		w.kept = h
	} else if !w.unkept {
		w.warn("penstock: the cache of a source can't be written", err)
	}
	w.unkept = err != nil
}

func (w *sourceWatch) warn(text string, err error) {
	_ = survive(func() { w.member.loader.log.Warn(text, "source", w.name.name, "error", err) })
}

// tell reports a failure, unless it was already reported since rules were last loaded.
func (w *sourceWatch) tell(n news) {
	if why := n.err.Error(); !w.reported[why] && len(w.reported) < maxReasons {
		w.reported[why] = true
		_ = w.member.take(n) // which returns n.err
	}
}

// backOff returns the time to wait after one more failure.
func (w *sourceWatch) backOff() time.Duration {
	if !w.healthy.IsZero() && time.Since(w.healthy) >= healthyAfter {
		w.failures = 0
	}
	w.healthy = time.Time{}
	most := mostBackOff
	if w.failures < 16 { // beyond, it would only overflow
		most = min(most, firstBackOff<<w.failures)
	}
	w.failures++
	return rand.N(most)
}

// askedFor returns the wait that the source's error asks for.
func askedFor(err error) time.Duration {
	var later interface{ RetryAfter() time.Duration }
	if !errors.As(err, &later) {
		return 0
	}
	return min(later.RetryAfter(), mostAsked)
}
