package rules

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"
)

// SourceConfig says how to watch a source. The zero value is ready to use.
type SourceConfig struct {
	WatchConfig
	// Cache is the path of a file that keeps the rules which were accepted last, for a start
	// while the source can't be reached. Its directory must exist; the file is made, and
	// only its owner can read it. Each source, and each process, needs its own. "" is none.
	Cache string
	// StartEmpty has WatchSource succeed without any rules if neither source nor cache has
	// some. apply is called once the source has.
	StartEmpty bool
}

// How a source is asked.
const (
	coldStart    = 5 * time.Second        // at the start, until the cache is good enough
	longestRead  = 30 * time.Second       // for an answer that is due at once
	rereadAfter  = 5 * time.Minute        // a read that goes by no revision; ± 10 %
	leastBetween = time.Second            // answers, whatever the source does
	firstBackOff = 100 * time.Millisecond // up to this after a first failure, then doubling
	mostBackOff  = 30 * time.Second       // up to this
	mostCold     = time.Second            // up to this while a program waits for its start
	mostAsked    = 5 * time.Minute        // the longest that a source may ask for
	healthyAfter = time.Minute            // without a failure, the next is a first one
	maxReasons   = 10                     // that are told before rules are loaded again
)

var (
	errNoCache  = errors.New("and there is no cache")
	errNotAsked = errors.New("the source says that its document is unchanged, and was asked for whatever there is")
)

// sourceWatch is a source that a Watcher watches. It is used by [WatchSource], then by the
// goroutine that starts.
type sourceWatch struct {
	*Watcher
	source Source
	after  string          // the revision to ask with; "" reads whatever there is
	seen   hash            // of the content that was tried last; none after a failure to get any
	told   map[string]bool // failures that were reported since rules were loaded
	reread time.Time       // when to ask without a revision

	failures int       // with no healthy time in between
	healthy  time.Time // since when there was none; zero after one

	cache  *cache // nil if there is none
	kept   hash   // of what was written there
	unkept bool   // it couldn't be the last time
}

// WatchSource loads the rules of a source, hands them to apply, and does so again whenever
// they change, until ctx ends or the Watcher is closed.
//
// The rules are only ever replaced by others that are right. While the source can't be
// reached or refuses to answer, and while its document is missing, empty, wrong or refused by
// apply, the last good rules stay: only `flow: []`, or another empty list, removes all. Each
// such reason is told once until rules are loaded again. How old the rules are is shown, as
// [Status].Confirmed, and nothing goes by it.
//
// After a failure the source is asked again within 100 ms, then 200 ms and so on up to 30 s, at
// random times, so that many programs don't return at the same one. It starts anew after a
// minute without failures. Every 5 minutes the document is read whatever its revision
// is. Answers that come sooner are asked for once a second.
//
// The first load gives the source 5 s to answer. A document that is missing or wrong
// is an answer. If that fails, the rules are those of the Cache file, which is told
// with their age; without any, WatchSource returns the error and leaves nothing running,
// unless StartEmpty says otherwise.
//
// A panic of the source is a failure like any other.
func WatchSource(ctx context.Context, source Source, apply func(Set) error, cfg SourceConfig) (*Watcher, error) {
	name, err := nameOf(source)
	if err != nil {
		return nil, err
	}
	w := &sourceWatch{Watcher: newWatcher(name, apply, cfg.WatchConfig), source: source, told: map[string]bool{}}
	w.what, w.key = "rule source", "source"
	if cfg.Cache != "" {
		w.cache = &cache{path: cfg.Cache, source: name, disk: realDisk{}}
		removeLeftovers(cfg.Cache)
	}
	if err := w.loadFirst(ctx, cfg.StartEmpty); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w.Watcher, nil
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

// loadFirst loads the rules for the first time: from the source, or else from the cache.
func (w *sourceWatch) loadFirst(ctx context.Context, startEmpty bool) error {
	failed := w.loadCold(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed.Err == nil {
		return nil
	}
	err := errNoCache
	if w.cache != nil {
		err = w.loadCache()
		if ctx.Err() != nil {
			return ctx.Err() // apply may have failed for that
		}
	}
	if err != nil && !startEmpty {
		return fmt.Errorf("%w; %w", failed.Err, err)
	}
	if err != nil && w.cache != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = survive(func() {
			w.log.Warn("penstock: the cache of a rule source can't be used", w.key, w.path, "error", err)
		})
	}
	w.tell(failed)
	return nil
}

// loadCold loads what the source has, if it says so soon, and returns how that went.
func (w *sourceWatch) loadCold(ctx context.Context) Reload {
	late := time.Now().Add(coldStart)
	for {
		doc, err := w.ask(ctx, "", time.Until(late))
		if err == nil {
			return w.load(doc)
		}
		delay := max(min(w.backOff(), mostCold), askedFor(err))
		if errors.Is(err, ErrNotFound) || time.Until(late) <= delay || !sleep(ctx, delay) {
			return Reload{Time: time.Now(), Err: err}
		}
	}
}

// loadCache loads what the cache has.
func (w *sourceWatch) loadCache() error {
	kept, err := w.cache.read()
	if err != nil {
		return err
	}
	r := Reload{Time: time.Now(), Hash: hashOf(kept.Data).String(), Revision: kept.Revision, Cached: kept.saved}
	if r.Change, err = w.replace(kept.Data); err != nil {
		return fmt.Errorf("of the cache %s: %w", w.cache.path, err)
	}
	w.report(r)
	return nil
}

// run asks the source again and again.
func (w *sourceWatch) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	for sleep(ctx, w.look(ctx)) {
	}
}

// look asks the source once, does what its answer means, and returns how long to wait before
// it is asked again.
func (w *sourceWatch) look(ctx context.Context) time.Duration {
	began := time.Now()
	after, limit := w.after, w.reread.Sub(began)
	if limit <= 0 || after == "" {
		after, limit = "", longestRead
	}
	doc, err := w.ask(ctx, after, limit)
	switch {
	case ctx.Err() != nil:
		return 0
	case err == nil && hashOf(doc.Data) != w.seen:
		if r := w.load(doc); ctx.Err() == nil { // or else apply may have failed for that
			w.tell(r)
		}
	case err == nil:
		w.noted(doc)
		w.confirm(doc.Revision)
		w.keep(doc)
	case errors.Is(err, ErrUnchanged):
		w.confirm(w.after)
	case after != "" && !time.Now().Before(w.reread): // it has been asked long enough
		return 0
	default:
		w.after, w.seen = "", hash{} // the next document is loaded, whatever it is
		w.tell(Reload{Time: time.Now(), Err: err})
		return max(w.backOff(), askedFor(err))
	}
	if w.healthy.IsZero() {
		w.healthy = time.Now()
	}
	return leastBetween - time.Since(began)
}

// ask asks the source, to which a panic is an error like any other.
func (w *sourceWatch) ask(ctx context.Context, after string, limit time.Duration) (doc Document, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p := survive(func() { doc, err = w.source.Next(ctx, after) }); p != nil {
		err = fmt.Errorf("panic: %v", p)
	}
	if after == "" && errors.Is(err, ErrUnchanged) {
		err = errNotAsked
	}
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", w.path, err)
	}
	return doc, nil
}

// load puts a document in force, tells of it if that succeeds, and returns how it went.
func (w *sourceWatch) load(doc Document) Reload {
	r := Reload{Time: time.Now(), Revision: doc.Revision}
	w.seen = hashOf(doc.Data)
	r.Hash = w.seen.String()
	r.Change, r.Err = w.replace(doc.Data)
	w.noted(doc)
	if r.Err == nil {
		clear(w.told)
		w.report(r)
		w.keep(doc)
	}
	return r
}

// noted notes that a document has been read.
func (w *sourceWatch) noted(doc Document) {
	w.after = doc.Revision
	w.reread = time.Now().Add(rereadAfter - rereadAfter/10 + rand.N(rereadAfter/5))
}

// keep writes a document that was read to the cache if it is in force and not there yet.
func (w *sourceWatch) keep(doc Document) {
	if w.cache == nil || !w.status.OK || w.kept == w.seen { // nobody else writes the status
		return
	}
	err := w.cache.write(cached{doc, time.Now()})
	if err == nil {
		w.kept = w.seen
	} else if !w.unkept {
		_ = survive(func() {
			w.log.Warn("penstock: the cache of a rule source can't be written", w.key, w.path, "error", err)
		})
	}
	w.unkept = err != nil
}

// tell reports a failure, unless it was told since rules were loaded last.
func (w *sourceWatch) tell(r Reload) {
	if r.Err == nil || w.told[r.Err.Error()] || len(w.told) == maxReasons {
		return
	}
	w.told[r.Err.Error()] = true
	w.report(r)
}

// backOff returns how long to wait after one more failure.
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

// askedFor returns how long the source asked to be left alone with its error.
func askedFor(err error) time.Duration {
	var later interface{ RetryAfter() time.Duration }
	if !errors.As(err, &later) {
		return 0
	}
	return min(later.RetryAfter(), mostAsked)
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
