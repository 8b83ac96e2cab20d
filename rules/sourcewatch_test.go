package rules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// store is a source in memory. It returns the result of next if set, or else its document.
type store struct {
	name string

	mu      sync.Mutex
	doc     Document
	next    func(ctx context.Context, after string) (Document, error)
	changed chan struct{} // closed when doc or next changes
	asked   []question
}

type question struct {
	at    time.Time
	after string
}

func newStore(data []byte) *store {
	s := &store{name: "store", changed: make(chan struct{})}
	s.put("1", data)
	return s
}

func (s *store) put(revision string, data []byte) { s.set(Document{data, revision}, nil) }

func (s *store) answer(next func(ctx context.Context, after string) (Document, error)) {
	s.set(Document{}, next)
}

func (s *store) fail(err error) {
	s.answer(func(context.Context, string) (Document, error) { return Document{}, err })
}

func (s *store) set(doc Document, next func(context.Context, string) (Document, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doc, s.next = doc, next
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) Name() string { return s.name }

func (s *store) Next(ctx context.Context, after string) (Document, error) {
	s.mu.Lock()
	s.asked = append(s.asked, question{time.Now(), after})
	s.mu.Unlock()
	for {
		s.mu.Lock()
		doc, next, changed := s.doc, s.next, s.changed
		s.mu.Unlock()
		if next != nil {
			return next(ctx, after)
		}
		if doc.Revision != after {
			return doc, nil
		}
		select {
		case <-ctx.Done():
			return Document{}, ctx.Err()
		case <-changed:
		}
	}
}

// questions returns the requests since its last call.
func (s *store) questions() []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// sourceProbe is a watched store that a test observes. The rules in force are never empty unless the
// test allows it.
type sourceProbe struct {
	loader *Loader
	*store
	t       *testing.T
	log     bytes.Buffer
	reloads []Reload
	applied []int // how many rules each time
	refuse  error
	mayBe   bool // empty
}

func (p *sourceProbe) apply(set Set) error {
	if p.refuse != nil {
		return p.refuse
	}
	if !p.mayBe {
		assert.Positive(p.t, whole(set), "half a document was applied, or none")
	}
	p.applied = append(p.applied, whole(set))
	return nil
}

// start watches the store with a new Loader.
func (p *sourceProbe) start(opts SourceOptions) error {
	p.loader = NewLoader(p.apply, slog.New(slog.NewTextHandler(&p.log, nil)))
	p.loader.OnReload(func(r Reload) { p.reloads = append(p.reloads, r) })
	return p.loader.WatchSource(p.t.Context(), p.store, opts)
}

func (p *sourceProbe) Close()         { p.loader.Close() }
func (p *sourceProbe) Status() Status { return p.loader.Status().Sources[0] }

// reloadsSince returns the reports since its last call, once the goroutines of the bubble are blocked.
func (p *sourceProbe) reloadsSince() []Reload {
	reloads := p.reloads
	p.reloads = nil
	return reloads
}

// onSource runs a test with a watched store that holds two rules.
func onSource(t *testing.T, test func(t *testing.T, p *sourceProbe)) {
	synctest.Test(t, func(t *testing.T) {
		p := &sourceProbe{t: t, store: newStore(rulesOfSize(2))}
		require.NoError(t, p.start(SourceOptions{}))
		defer p.Close()
		synctest.Wait()
		require.Len(t, p.reloadsSince(), 1)
		test(t, p)
	})
}

// The last good rules stay, regardless of the source's responses. The reason is reported once, even if
// the source is asked often, and new rules come into force once it has some.
// known bug 148
func TestSourceKeepsTheLastGoodRules(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*store)
		why  string
	}{
		{"unreachable", func(s *store) { s.fail(errors.New("connection refused")) }, "store: connection refused"},
		{"missing", func(s *store) { s.fail(fmt.Errorf("status 404: %w", ErrNotFound)) }, "store: status 404: there is no such document"},
		{"refused", func(s *store) { s.fail(errors.New("status 401")) }, "store: status 401"},
		{"hangs", func(s *store) {
			s.answer(func(ctx context.Context, _ string) (Document, error) { <-ctx.Done(); return Document{}, ctx.Err() })
		}, "store: context deadline exceeded"},
		{"empty", func(s *store) { s.put("2", nil) }, "store:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"blank", func(s *store) { s.put("2", []byte(" \n\n")) }, "store:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"null", func(s *store) { s.put("2", []byte("null")) }, "store:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"a key without a value", func(s *store) { s.put("2", []byte("flow:")) }, "store:1:6: flow: has no value: write `flow: []` for no rules"},
		{"garbage", func(s *store) { s.put("2", []byte("<html>\x00")) }, "store:1:7: "},
		{"half", func(s *store) { s.put("2", []byte("flow: [{resource: a, thr")) }, "store:1:"},
		{"too large", func(s *store) { s.put("2", bytes.Repeat([]byte("#"), MaxFileSize+1)) }, "store: has 1048577 bytes, the maximum is 1048576"},
		{"panics", func(s *store) { s.answer(func(context.Context, string) (Document, error) { panic("oops") }) }, "store: panic: oops"},
		{"unchanged and not asked", func(s *store) { s.fail(ErrUnchanged) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			onSource(t, func(t *testing.T, p *sourceProbe) {
				before := p.Status()
				c.set(p.store)
				after(time.Hour)
				if c.why != "" {
					reloads := p.reloadsSince()
					require.Len(t, reloads, 1)
					assert.ErrorContains(t, reloads[0].Err, c.why)
					s := p.Status()
					assert.False(t, s.OK)
					assert.True(t, s.Watching)
					assert.Equal(t, before.Hash, s.Hash)
					assert.Equal(t, before.Revision, s.Revision)
					assert.Equal(t, 2, s.Rules)
					assert.Less(t, s.Confirmed.Sub(before.Confirmed), 6*time.Minute, "how old they are shows")
				}
				require.Equal(t, []int{2}, p.applied)

				p.reloadsSince()
				p.put("0", rulesOfSize(3)) // an older revision is another one
				after(longestRead + mostBackOff)
				reloads := p.reloadsSince()
				require.Len(t, reloads, 1)
				require.NoError(t, reloads[0].Err)
				require.Equal(t, []int{2, 3}, p.applied)
				assert.Equal(t, "0", p.Status().Revision)
				assert.True(t, p.Status().OK)
			})
		})
	}
}

// Only an empty list removes the rules.
func TestSourceIsClearedByAnEmptyList(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		p.mayBe = true
		p.put("2", []byte("flow: []"))
		after(leastBetween)
		require.Equal(t, []int{2, 0}, p.applied)
		require.Equal(t, "+0 ~0 -2", p.reloadsSince()[0].Change.String())
	})
}

// Reports show when a source fails and when it recovers. Then its rules are applied again, since others
// may be in force.
func TestSourceThatComesBack(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		for range 3 {
			p.fail(errors.New("away"))
			after(time.Minute)
			require.EqualError(t, p.Status().LastError, "store: away")
			require.Len(t, p.reloadsSince(), 1)
			p.put("1", rulesOfSize(2))
			after(mostBackOff)
			reloads := p.reloadsSince()
			require.Len(t, reloads, 1)
			require.NoError(t, reloads[0].Err)
			require.True(t, reloads[0].Change.Empty())
			require.True(t, p.Status().OK)
		}
		require.Equal(t, []int{2, 2, 2, 2}, p.applied)
	})
}

// Each reason is reported once until rules are loaded again, and never more than ten.
func TestSourceTellsEachReasonOnce(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		n := 0
		p.answer(func(context.Context, string) (Document, error) {
			n++
			return Document{}, fmt.Errorf("reason %d", n%3)
		})
		after(time.Hour)
		require.Len(t, p.reloadsSince(), 3)
		p.answer(func(context.Context, string) (Document, error) {
			n++
			return Document{}, fmt.Errorf("port %d", n)
		})
		after(time.Hour)
		require.Len(t, p.reloadsSince(), maxReasons-3)
	})
}

// A refusal by apply is an ordinary error, and the rules are retried when the content changes.
func TestSourceWhoseRulesAreRefused(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		p.refuse = errors.New("no")
		p.put("2", rulesOfSize(3))
		after(time.Hour)
		reloads := p.reloadsSince()
		require.Len(t, reloads, 1)
		require.EqualError(t, reloads[0].Err, "store: applying: no")
		p.refuse = nil
		p.put("3", rulesOfSize(4))
		after(leastBetween)
		require.Equal(t, []int{2, 4}, p.applied)
	})
}

// After a failure the next request comes within 100 ms, 200 ms and so on up to 30 s, at random
// times. Only a minute without failures resets that.
// known bug 149
func TestSourceBackOff(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		gaps := func() (gaps []time.Duration) {
			asked := p.questions()
			for i := range asked[1:] {
				gaps = append(gaps, asked[i+1].at.Sub(asked[i].at))
			}
			return gaps
		}
		p.questions()
		p.fail(errors.New("away"))
		after(24 * time.Hour)
		failing := gaps()
		require.Greater(t, len(failing), 24*60*2)
		sum, most := time.Duration(0), 2*firstBackOff // the first request was sent before
		for i, gap := range failing {
			require.Less(t, gap, most, "gap %d", i)
			most = min(2*most, mostBackOff)
			sum += gap
		}
		assert.InDelta(t, mostBackOff/2, sum/time.Duration(len(failing)), float64(time.Second), "full jitter")

		p.put("1", rulesOfSize(2))
		after(healthyAfter - mostBackOff)
		p.questions()
		p.fail(errors.New("away"))
		after(time.Hour)
		first := gaps()[:9]
		assert.Greater(t, first[0]+first[1]+first[2]+first[3]+first[4]+first[5]+first[6]+first[7]+first[8], 10*time.Second, "a short recovery is none")

		p.put("1", rulesOfSize(2))
		after(mostBackOff + healthyAfter)
		p.questions()
		p.fail(errors.New("away"))
		after(time.Hour)
		assert.Less(t, gaps()[0], 2*firstBackOff)
	})
}

type later struct {
	error
	d time.Duration
}

func (l later) RetryAfter() time.Duration { return l.d }

// A source may ask not to be called for a while, up to a limit.
func TestSourceAsksForTime(t *testing.T) {
	for _, c := range []struct{ asked, least, most time.Duration }{
		{-time.Minute, 0, 2 * firstBackOff},
		{time.Minute, time.Minute, time.Minute},
		{time.Hour, mostAsked, mostAsked},
	} {
		onSource(t, func(t *testing.T, p *sourceProbe) {
			p.questions()
			p.fail(fmt.Errorf("busy: %w", later{errors.New("status 503"), c.asked}))
			after(10 * time.Minute)
			asked := p.questions()
			gap := asked[1].at.Sub(asked[0].at)
			assert.GreaterOrEqual(t, gap, c.least)
			assert.LessOrEqual(t, gap, c.most)
		})
	}
}

// Every five minutes the document is read regardless of its revision, even from a source that blocks.
// known bug 150
func TestSourceIsReadAnew(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		p.questions()
		after(10 * time.Hour)
		last := time.Time{}
		reads := 0
		for _, q := range p.questions() {
			if q.after != "" {
				continue
			}
			if !last.IsZero() {
				assert.GreaterOrEqual(t, q.at.Sub(last), 4*time.Minute+30*time.Second)
				assert.Less(t, q.at.Sub(last), 5*time.Minute+32*time.Second)
			}
			last = q.at
			reads++
		}
		assert.Greater(t, reads, 108)
		require.Empty(t, p.reloadsSince())
		require.Less(t, time.Since(p.Status().Confirmed), 6*time.Minute)

		p.put("1", rulesOfSize(5)) // of the same revision
		after(6 * time.Minute)
		require.Equal(t, []int{2, 5}, p.applied)
		p.put("9", rulesOfSize(5)) // the same content
		after(leastBetween)
		require.Equal(t, []int{2, 5}, p.applied)
		require.Equal(t, "9", p.Status().Revision)
	})
}

// A source that doesn't wait is asked once a second.
func TestSourceThatDoesNotWait(t *testing.T) {
	for name, next := range map[string]func(context.Context, string) (Document, error){
		"unchanged": func(_ context.Context, after string) (Document, error) {
			if after == "" {
				return Document{rulesOfSize(2), "1"}, nil
			}
			return Document{}, ErrUnchanged
		},
		"the same":    func(context.Context, string) (Document, error) { return Document{rulesOfSize(2), "1"}, nil },
		"no revision": func(context.Context, string) (Document, error) { return Document{rulesOfSize(2), ""}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			onSource(t, func(t *testing.T, p *sourceProbe) {
				p.answer(next)
				after(2 * leastBetween)
				p.questions()
				after(time.Hour)
				assert.LessOrEqual(t, len(p.questions()), 3601)
				assert.Empty(t, p.reloadsSince())
				assert.LessOrEqual(t, time.Since(p.Status().Confirmed), leastBetween)
			})
		})
	}
}

// A start takes less than six seconds regardless of the source: the rules come from the cache, are
// reported as cached, and are later replaced by the source's.
// known bug 151
func TestColdStart(t *testing.T) {
	hang := func(ctx context.Context, _ string) (Document, error) { <-ctx.Done(); return Document{}, ctx.Err() }
	fail := func(err error) func(context.Context, string) (Document, error) {
		return func(context.Context, string) (Document, error) { return Document{}, err }
	}
	for _, c := range []struct {
		name string
		next func(context.Context, string) (Document, error)
		most time.Duration
		why  string
	}{
		{"hangs", hang, coldStart, "store: context deadline exceeded"},
		{"unreachable", fail(errors.New("connection refused")), coldStart, "store: connection refused"},
		{"panics", func(context.Context, string) (Document, error) { panic("oops") }, coldStart, "store: panic: oops"},
		{"asks for time", fail(later{errors.New("busy"), time.Minute}), 0, "store: busy"},
		{"missing", fail(ErrNotFound), 0, "store: there is no such document"},
		{"wrong", func(context.Context, string) (Document, error) { return Document{[]byte("flow: 1"), "x"}, nil }, 0,
			"store:1:7: flow: must be a list of rules, not 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "cache")
				p := &sourceProbe{t: t, store: newStore(rulesOfSize(2))}
				var opts SourceOptions
				opts.Cache = path
				start := func() error {
					began := time.Now()
					err := p.start(opts)
					assert.LessOrEqual(t, time.Since(began), c.most)
					assert.Less(t, time.Since(began), 6*time.Second)
					return err
				}

				p.answer(c.next)
				require.ErrorContains(t, start(), c.why)
				require.Empty(t, p.reloads, "the text of an error isn't reported")

				opts.StartEmpty = true
				require.NoError(t, start())
				require.Empty(t, p.applied)
				require.EqualError(t, p.reloadsSince()[0].Err, c.why)
				require.False(t, p.Status().OK)
				p.put("1", rulesOfSize(2))
				after(mostAsked)
				require.Equal(t, []int{2}, p.applied)
				require.NoError(t, p.reloadsSince()[0].Err)
				saved := p.Status().LastSuccess
				p.Close()
				opts.StartEmpty = false

				after(time.Hour)
				p.answer(c.next)
				require.NoError(t, start())
				require.Equal(t, []int{2, 2}, p.applied)
				reloads := p.reloadsSince()
				require.Len(t, reloads, 2)
				require.NoError(t, reloads[0].Err)
				assert.True(t, saved.Equal(reloads[0].Cached))
				assert.Equal(t, "1", reloads[0].Revision)
				assert.EqualError(t, reloads[1].Err, c.why)
				assert.Contains(t, p.log.String(), `level=WARN msg="penstock: source unreachable, using the rules in its cache" source=store hash=`)
				assert.Contains(t, p.log.String(), " age=1h")
				s := p.Status()
				assert.False(t, s.OK)
				assert.True(t, saved.Equal(s.Cached))
				assert.True(t, saved.Equal(s.Confirmed))
				assert.Equal(t, 2, s.Rules)

				p.put("1", rulesOfSize(2))
				after(mostAsked)
				reloads = p.reloadsSince()
				require.Len(t, reloads, 1)
				require.NoError(t, reloads[0].Err)
				assert.Zero(t, reloads[0].Cached)
				assert.Zero(t, p.Status().Cached)
				assert.True(t, p.Status().OK)
				p.Close()
			})
		})
	}
}

// The error for missing rules is the store's response, if there was one, rather than the timeout of
// another request.
func TestColdStartTellsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sourceProbe{t: t, store: newStore(nil)}
		asked := 0
		p.answer(func(ctx context.Context, _ string) (Document, error) {
			if asked++; asked == 1 {
				return Document{}, errors.New("status 503")
			}
			<-ctx.Done()
			return Document{}, ctx.Err()
		})
		require.EqualError(t, p.start(SourceOptions{}), "store: status 503; and there is no cache")
		require.Equal(t, 2, asked)
	})
}

// A store that comes up while a program starts is waited for.
func TestColdStartWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sourceProbe{t: t, store: newStore(nil)}
		p.fail(errors.New("away"))
		time.AfterFunc(3900*time.Millisecond, func() { p.put("1", rulesOfSize(2)) })
		require.NoError(t, p.start(SourceOptions{}))
		p.Close()
		require.Equal(t, []int{2}, p.applied)
		require.Len(t, p.reloadsSince(), 1, "that it wasn't there at first is nobody's business")
	})
}

// An invalid cache is ignored.
func TestCacheThatIsNotRight(t *testing.T) {
	good := func(t *testing.T, source string) []byte {
		c := &cache{path: filepath.Join(t.TempDir(), "good"), source: source, disk: realDisk{}}
		require.NoError(t, c.write(cached{Document{rulesOfSize(2), "1"}, time.Now()}))
		data, _, err := readFile(c.path, 1<<20, trust{})
		require.NoError(t, err)
		return data
	}
	for _, c := range []struct {
		name string
		data func(t *testing.T) []byte
		why  string
	}{
		{"empty", func(*testing.T) []byte { return nil }, "is not a cache of rules"},
		{"a rule file", func(*testing.T) []byte { return rulesOfSize(2) }, "is not a cache of rules"},
		{"another version", func(*testing.T) []byte { return []byte(`{"format":"penstock rules 2"}` + "\n") }, "is not a cache of rules"},
		{"of another source", func(t *testing.T) []byte { return good(t, "other") }, `is the cache of another source, "other"`},
		{"cut", func(t *testing.T) []byte { return bytes.TrimSuffix(good(t, "store"), []byte("threshold: 2}\n")) }, "is damaged: its content doesn't match its hash"},
		{"changed", func(t *testing.T) []byte {
			return bytes.ReplaceAll(good(t, "store"), []byte("threshold: 2"), []byte("threshold: 9"))
		},
			"is damaged: its content doesn't match its hash"},
		{"without its age", func(t *testing.T) []byte {
			return bytes.Replace(good(t, "store"), []byte(`"saved"`), []byte(`"saves"`), 1)
		},
			"is damaged: it doesn't say when it was written"},
		{"too large", func(t *testing.T) []byte { return append(good(t, "store"), make([]byte, 2<<20)...) }, "bytes or more, the maximum is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := c.data(t)
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "cache")
				write(t, path, data)
				p := &sourceProbe{t: t, store: newStore(nil)}
				p.fail(errors.New("away"))
				var opts SourceOptions
				opts.Cache = path
				err := p.start(opts)
				require.ErrorContains(t, err, "store: away; "+path+": ")
				require.ErrorContains(t, err, c.why)
				opts.StartEmpty = true
				require.NoError(t, p.start(opts))
				require.Empty(t, p.applied)
				assert.Contains(t, p.log.String(), `level=WARN msg="penstock: the cache of a source can't be used" source=store error=`)
				p.Close()
			})
		})
	}
}

// Each time the cache becomes unwritable, a warning is logged. Writing is retried.
func TestCacheThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		p := &sourceProbe{t: t, store: newStore(rulesOfSize(2))}
		var opts SourceOptions
		opts.Cache = filepath.Join(dir, "cache")
		require.NoError(t, p.start(opts))
		after(time.Hour)
		assert.Equal(t, 1, strings.Count(p.log.String(), `level=WARN msg="penstock: the cache of a source can't be written" source=store error="open `))
		replaceDir(t, dir)
		after(6 * time.Minute)
		p.Close()
		c := cache{path: opts.Cache, source: "store"}
		kept, err := c.read()
		require.NoError(t, err)
		require.Equal(t, rulesOfSize(2), kept.Data)
	})
}

// A cache whose path is a rule file by mistake doesn't replace the rules.
func TestCacheIsNoRuleFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		p := &sourceProbe{t: t, store: newStore(rulesOfSize(2))}
		require.NoError(t, p.start(SourceOptions{Cache: path}))
		p.put("2", rulesOfSize(3))
		after(time.Minute)
		p.Close()
		require.Equal(t, []int{2, 3}, p.applied)
		require.Equal(t, 1, strings.Count(p.log.String(), "is a rule file, which a cache would replace: give the cache a separate file"))
		set, err := Load(path)
		require.NoError(t, err)
		require.Equal(t, 1, set.Len())
	})
}

// Errors in a source itself are reported immediately.
func TestSourceWithoutAName(t *testing.T) {
	l := NewLoader(func(Set) error { return nil }, nil)
	require.ErrorContains(t, l.WatchSource(t.Context(), nil, SourceOptions{}), "the name of a source of rules: panic: ")
	require.EqualError(t, l.WatchSource(t.Context(), &store{}, SourceOptions{}), "a source of rules has no name")
	l.Close()
	require.ErrorIs(t, l.WatchSource(t.Context(), newStore(rulesOfSize(1)), SourceOptions{}), errClosed)
}

// When its context ends, or when the Loader is closed, a watched source leaves nothing running and
// reports nothing more.
func TestSourceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newStore(rulesOfSize(2))
		var refusing bool
		reloads := 0
		l := NewLoader(func(Set) error {
			if refusing {
				end()
				return ctx.Err()
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		l.OnReload(func(Reload) { reloads++ })
		require.NoError(t, l.WatchSource(ctx, s, SourceOptions{}))
		after(time.Minute)
		refusing = true
		s.put("2", rulesOfSize(3))
		after(time.Minute)
		require.Error(t, ctx.Err(), "it was not asked")
		require.Equal(t, 1, reloads)
		require.False(t, l.Status().Watching)
		require.ErrorIs(t, l.WatchSource(ctx, s, SourceOptions{}), context.Canceled)
		l.Close()
	})
}

// Several sources are in force together; a source that starts empty contributes no rules until it has
// some. Rules in conflict with other sources are retried when those change, and are written to the
// cache once they are in force.
func TestSourceAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(id string) []byte { return fmt.Appendf(nil, "flow: [{id: %s, resource: a, threshold: 1}]", id) }
		set := func(id string) Set {
			set, err := Parse("", one(id))
			require.NoError(t, err)
			return set
		}
		var inForce []string
		l := NewLoader(func(set Set) error {
			inForce = nil
			for _, r := range set.Flow {
				inForce = append(inForce, r.ID)
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		defer l.Close()
		require.NoError(t, l.Load(set("a")))
		first, second := newStore(nil), newStore(one("b"))
		first.name, second.name = "first", "second"
		first.fail(errors.New("away"))
		require.NoError(t, l.WatchSource(t.Context(), first, SourceOptions{StartEmpty: true}))
		require.Equal(t, []string{"a"}, inForce)
		path := filepath.Join(t.TempDir(), "cache")
		require.NoError(t, l.WatchSource(t.Context(), second, SourceOptions{Cache: path}))
		require.Equal(t, []string{"a", "b"}, inForce)
		require.ErrorAs(t, l.WatchSource(t.Context(), second, SourceOptions{}), new(*SourceError))
		third := newStore(one("c"))
		third.name = "code" // the name of the rules that the program loads itself
		require.ErrorContains(t, l.WatchSource(t.Context(), third, SourceOptions{}), `the source name "code" is reserved`)

		first.put("1", one("c"))
		after(time.Minute)
		require.Equal(t, []string{"a", "c", "b"}, inForce)
		second.put("2", one("a"))
		after(time.Minute)
		require.Equal(t, []string{"a", "c", "b"}, inForce)
		s := l.Status().Sources[2]
		require.False(t, s.OK)
		require.ErrorContains(t, s.LastError, `the id "a" is also that of flow[0] in code`)
		c := cache{path: path, source: "second"}
		kept, err := c.read()
		require.NoError(t, err)
		require.Equal(t, one("b"), kept.Data)

		second.fail(errors.New("away"))
		after(time.Minute)
		require.NoError(t, l.Load(set("d")))
		require.Equal(t, []string{"d", "c", "a"}, inForce)
		require.Equal(t, "2", l.Status().Sources[2].Revision)
		second.put("2", one("a"))
		after(6 * time.Minute)
		kept, err = c.read()
		require.NoError(t, err)
		require.Equal(t, one("a"), kept.Data)
	})
}

// If a source's first rules conflict with other sources, they are retried when those change, whether
// the source started from its cache or empty.
func TestColdStartThatDoesNotGoWithOthers(t *testing.T) {
	for _, fromCache := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var inForce []string
			l := NewLoader(func(set Set) error {
				inForce = nil
				for _, r := range set.Flow {
					inForce = append(inForce, r.ID)
				}
				return nil
			}, slog.New(slog.DiscardHandler))
			defer l.Close()
			one := func(id string) []byte { return fmt.Appendf(nil, "flow: [{id: %s, resource: a, threshold: 1}]", id) }
			set, err := Parse("", one("a"))
			require.NoError(t, err)
			require.NoError(t, l.Load(set))

			opts := SourceOptions{StartEmpty: !fromCache, Cache: filepath.Join(t.TempDir(), "cache")}
			before := []string{"a"}
			if fromCache {
				c := cache{path: opts.Cache, source: "store", disk: realDisk{}}
				require.NoError(t, c.write(cached{Document{one("b"), "1"}, time.Now()}))
				before = append(before, "b")
			}
			s := newStore(one("a"))
			require.NoError(t, l.WatchSource(t.Context(), s, opts))
			require.Equal(t, before, inForce)
			is := l.Status().Sources[1]
			require.False(t, is.OK)
			require.EqualValues(t, 1, is.Failures)
			require.ErrorContains(t, is.LastError, `the id "a" is also that of flow[0] in code`)

			require.NoError(t, l.Load(Set{}))
			require.Equal(t, []string{"a"}, inForce)
			is = l.Status().Sources[0]
			require.True(t, is.OK)
			require.Equal(t, "1", is.Revision)
			require.Zero(t, is.Cached)
		})
	}
}

// absent is an error whose methods fail on a nil pointer.
type absent struct{ wait time.Duration }

func (e *absent) Error() string             { return e.wait.String() }
func (e *absent) RetryAfter() time.Duration { return e.wait }

// An error whose methods panic, as the methods of a nil pointer may, is an ordinary failure.
func TestSourceWhoseErrorsPanic(t *testing.T) {
	onSource(t, func(t *testing.T, p *sourceProbe) {
		p.answer(func(context.Context, string) (Document, error) { return Document{}, (*absent)(nil) })
		after(time.Minute)
		reloads := p.reloadsSince()
		require.Len(t, reloads, 1)
		require.ErrorContains(t, reloads[0].Err, "store: panic: runtime error: invalid memory address")
		require.Equal(t, 2, p.Status().Rules)
		p.put("2", rulesOfSize(3))
		after(time.Minute)
		require.True(t, p.Status().OK)
	})
}
