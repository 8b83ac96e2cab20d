package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/rules"
)

// site is a Guard that watches a file which is rewritten.
type site struct {
	*api.Guard
	t      testing.TB
	path   string
	failed atomic.Int64 // reloads

	version atomic.Int64 // the newest that decided a call
	news    chan struct{}
	round   atomic.Int64 // of rewriting

	mu   sync.Mutex
	torn map[int64]string // by round
}

// version returns the set of a version as a file. Each has the same size and the same rules in the
// same order; half of them refuse everything: in even versions "a" and "d", in odd ones "b" and
// "c". So every call to "orders" (a, b) and "carts" (c, d) is refused by exactly one rule. The
// first and the last rule contain the version. If the first half is of one version and the second
// of another, or is missing, "orders" or "carts" passes, or the two ends disagree.
func version(n int64) []byte {
	shut, open := "0.0", "1e9"
	if n%2 == 1 {
		shut, open = open, shut
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "flow:\n  - {id: first %09d, resource: first, threshold: 0}\n", n)
	fmt.Fprintf(&b, "  - {id: a, resource: orders, threshold: %s}\n", shut)
	fmt.Fprintf(&b, "  - {id: c, resource: carts, threshold: %s, origin: app}\n", open)
	for i := range 8 {
		fmt.Fprintf(&b, "  - {id: e%d, resource: other, threshold: %d}\n", i, i)
	}
	fmt.Fprintf(&b, "  - {id: b, resource: or.*, regex: true, threshold: %s, interval: 2s}\n", open)
	fmt.Fprintf(&b, "  - {id: d, resource: carts, threshold: %s}\n", shut)
	fmt.Fprintf(&b, "  - {id: last %09d, resource: last, threshold: 0}\n", n)
	return b.Bytes()
}

// half returns where the second half of a version begins: at a rule.
func half(data []byte) int { return bytes.Index(data, []byte("  - {id: b,")) }

// newSites returns n sites, each with version 0 of its file in effect.
func newSites(t testing.TB, n int) []*site {
	t.Helper()
	sites := make([]*site, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range sites {
		dir := filepath.Join(t.TempDir(), "dir")
		starting.Go(func() { sites[i], errs[i] = newSite(t, dir) })
	}
	starting.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, s := range sites {
		books.Keep(t, s.Engine())
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return sites
}

func newSite(t testing.TB, dir string) (s *site, err error) {
	s = &site{t: t, path: filepath.Join(dir, "rules.yaml"), news: make(chan struct{}, 1), torn: make(map[int64]string)}
	s.Guard, err = api.New(api.Config{Logger: silent})
	if err != nil {
		return nil, err
	}
	s.OnReload(func(r rules.Reload) {
		if r.Err != nil {
			s.failed.Add(1)
		}
	})
	return s, each(
		func() error { return os.Mkdir(dir, 0o700) },
		func() error { return os.WriteFile(s.path, version(0), 0o600) },
		func() error { return s.WatchRules(t.Context(), s.path) })
}

// check decides once about each resource. Every decision must use one whole set, and never an
// earlier set than the previous one.
func (s *site) check(ctx context.Context) {
	round := s.round.Load()
	before := s.version.Load()
	first := s.refuser(ctx, "first")
	orders, carts := s.refuser(ctx, "orders"), s.refuser(ctx, "carts")
	last := s.refuser(ctx, "last")
	lower, ok1 := numbered(first, "first ")
	upper, ok2 := numbered(last, "last ")
	switch {
	case !ok1 || !ok2 || lower < before || upper < lower,
		orders != "a" && orders != "b", carts != "c" && carts != "d",
		// All four used one set, if the first and the last did.
		lower == upper && (orders == "a") != (lower%2 == 0),
		lower == upper && (carts == "d") != (lower%2 == 0):
		s.mu.Lock()
		s.torn[round] = fmt.Sprintf("%q %q %q %q, after %d", first, orders, carts, last, before)
		s.mu.Unlock()
		return
	}
	for was := before; lower > was; was = s.version.Load() {
		if s.version.CompareAndSwap(was, lower) {
			select {
			case s.news <- struct{}{}:
			default:
			}
		}
	}
}

// refuser returns the rule that refuses a call, or "" if the call passes.
func (s *site) refuser(ctx context.Context, resource string) string {
	e, err := s.Entry(ctx, resource)
	e.Exit()
	if b, ok := errors.AsType[*core.BlockError](err); ok {
		return b.Rule
	}
	return ""
}

func numbered(id, prefix string) (n int64, ok bool) {
	digits, ok := strings.CutPrefix(id, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil
}

// await waits until a decision used version n.
func (s *site) await(n int64) error {
	late := time.After(patience.Of(s.t))
	for s.version.Load() < n {
		select {
		case <-s.news:
		case <-late:
			return fmt.Errorf("version %d has not been loaded, %d is in effect", n, s.version.Load())
		}
	}
	return nil
}

// readers starts goroutines that decide at all sites until the returned function is called.
func readers(t testing.TB, sites []*site) (stop func()) {
	var running sync.WaitGroup
	var done atomic.Bool
	ctx := from(t.Context(), "web", "app")
	for i := range 4 {
		running.Go(func() {
			for k := i; !done.Load(); k++ {
				sites[k%len(sites)].check(ctx)
				runtime.Gosched() // or writers and watchers run too rarely
			}
		})
	}
	return func() {
		done.Store(true)
		running.Wait()
	}
}
