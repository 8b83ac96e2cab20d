package inspect_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

// crowded is a lab with a number of resources, each called in one context by one caller, and named
// by a rule.
func crowded(t *testing.T, resources int) (*lab, func() rules.Set) {
	l := newLab(t, engine.Config{})
	set := rules.Set{}
	for range 2 { // so that there is a minute of history
		l.clock.Advance(1500 * time.Millisecond)
		for i := range resources {
			name := fmt.Sprintf("GET /customers/%05d/orders", i)
			l.call(from("web", "app"), 1, 137*time.Microsecond, name)
			if len(set.Flow) < resources {
				set.Flow = append(set.Flow, flow.Rule{ID: fmt.Sprint("orders ", i), Resource: name, Threshold: 1e9})
			}
		}
	}
	l.rules(set.Flow...)
	l.tree() // moves the counts to the minute's history
	return l, func() rules.Set { return set }
}

// paths are the readers' requests in turn, the longest last.
var paths = []string{"/tree", "/tree?format=sentinel", "/rules", "/rules?format=json", "/nodes?limit=10000", "/tree?format=json"}

// Any number of readers, regardless of their speed, hold less than 64 MiB beyond the tree.
// known bug 119
func TestMemoryOfReaders(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector itself takes memory; TestReadersOfBothKinds runs with it")
	}
	l, set := crowded(t, 10_000)
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // measures the readers' memory, not garbage
	heap := watchHeap(t)
	readers := figure.Size(12, 12, 100, 1000)
	served := serveBothKinds(t, inspect.Handler(l.Engine, set), readers)
	t.Logf("%d of %d that never read were served", served, readers)
	figure.Report(t, figure.Figure{Name: "memory that readers hold beyond the tree", Value: float64(heap()) / (1 << 20), Unit: "MiB", AtMost: 64, N: int64(3 * readers)})
}

func TestReadersOfBothKinds(t *testing.T) {
	l, set := crowded(t, 300)
	require.Equal(t, 40, serveBothKinds(t, inspect.Handler(l.Engine, set), 40), "who never reads is in nobody's way where trees are small")
}

// serveBothKinds starts three groups of each readers: the first read whole replies, the second arrive
// in sequence and never read, the third read whole replies again. It returns the number of readers of the second
// group that got a reply. When all readers have disconnected, there is room again.
func serveBothKinds(t *testing.T, h http.Handler, each int) (served int) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	dial := func(path string) net.Conn {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", path)
		require.NoError(t, err)
		return c
	}
	reply := func(path string, c net.Conn) *http.Response {
		r, err := http.ReadResponse(bufio.NewReaderSize(c, 64), nil) // the status, and hardly more
		require.NoError(t, err, path)
		if r.StatusCode != http.StatusOK {
			require.Equal(t, http.StatusServiceUnavailable, r.StatusCode, path)
			require.NotEmpty(t, r.Header.Get("Retry-After"), path)
		}
		return r
	}
	read := func(path string) (ok bool) {
		c := dial(path)
		defer c.Close()
		r := reply(path, c)
		defer r.Body.Close()
		_, err := io.Copy(io.Discard, r.Body)
		require.NoError(t, err, path)
		return r.StatusCode == http.StatusOK
	}
	crowd := func(read func(path string)) {
		var readers sync.WaitGroup
		for i := range each {
			readers.Go(func() { read(paths[i%len(paths)]) })
		}
		readers.Wait()
	}
	insist := func(path string) {
		for !read(path) {
			runtime.Gosched()
		}
	}

	crowd(insist)
	var asleep []net.Conn
	for i := range each {
		path := paths[len(paths)-1-i%2]
		c := dial(path)
		asleep = append(asleep, c)
		if reply(path, c).StatusCode == http.StatusOK {
			served++
		}
	}
	crowd(func(path string) { read(path) })
	for _, c := range asleep {
		c.Close()
	}
	for _, path := range paths {
		insist(path)
	}
	return served
}

// watchHeap returns a function that returns the maximum size of the heap beyond its initial size.
func watchHeap(t *testing.T) (most func() int64) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	before := heapBytes()
	var peak atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			peak.Store(max(peak.Load(), heapBytes()))
			time.Sleep(time.Millisecond)
		}
	})
	return func() int64 {
		stop()
		watching.Wait()
		return peak.Load() - before
	}
}

// heapBytes returns the live bytes of the latest collection. Garbage that a busy machine has not
// collected yet doesn't count.
func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
