package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/source"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

// Goroutines that the libraries leave running are ignored; only our engines are checked, since each
// is passed to books.Keep.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// Every way does what its name says, so that the benchmark times the right thing.
func TestWays(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range ways {
		assert.False(t, seen[w.name], "two ways are named %q", w.name)
		seen[w.name] = true
		t.Run(w.name, func(t *testing.T) {
			call, g, done := w.open()
			defer done()
			books.Keep(t, g.Engine())
			passed := 0
			for range 100 {
				if call() {
					passed++
				}
			}
			if w.refused {
				assert.LessOrEqual(t, passed, 1)
			} else {
				assert.Equal(t, 100, passed)
			}
		})
	}
}

// Every contender does its job: open keys pass, closed ones refuse all but the first call, and the
// given work runs.
func TestContendersDoTheJob(t *testing.T) {
	for name, contenders := range map[string][]contender{"rate": rates, "concurrency": concurrencies, "breaker": breakers} {
		for _, c := range contenders {
			if c.name == "uber-go/ratelimit" {
				continue // refuses nobody
			}
			for _, named := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, c.name, named), func(t *testing.T) {
					l := c.open(keys{all: 4, closed: 2, named: named})
					if l.stop != nil {
						defer l.stop()
					}
					for key := range 4 {
						var ran atomic.Int64
						passed := 0
						for range 50 {
							if l.call(key, func() { ran.Add(1) }) {
								passed++
							}
						}
						assert.Equal(t, passed, int(ran.Load()), "key %d", key)
						if key < 2 {
							assert.Equal(t, 50, passed, "key %d is open", key)
						} else {
							assert.LessOrEqual(t, passed, 1, "key %d is closed", key)
						}
					}
				})
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	assert.Equal(t, line{what: "a", measured: "3.00 ×", target: "≤ 3 ×", verdict: "met"}, atMost("a", 3, 3, " ×"))
	assert.Equal(t, line{what: "a", measured: "3.10 ×", target: "≤ 3 ×", verdict: "4 % over"}, atMost("a", 3.1, 3, " ×"))
	assert.Equal(t, line{what: "a", measured: "1.00", target: "≤ 0", verdict: "missed"}, atMost("a", 1, 0, ""))
	assert.Equal(t, line{what: "a", measured: "1.80 ×", target: "≥ 1.8 ×", verdict: "met"}, atLeast("a", 1.8, 1.8, " ×"))
	assert.Equal(t, line{what: "a", measured: "0.90 ×", target: "≥ 1.8 ×", verdict: "50 % short"}, atLeast("a", 0.9, 1.8, " ×"))
}

func TestPageHasItsPlace(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	for _, name := range []string{"bench", "scale"} {
		_, err = tables.Kept(filepath.Join(root, page), name)
		assert.NoError(t, err)
	}
	_, err = tables.Kept(filepath.Join(root, "README.md"), "bench")
	assert.NoError(t, err)
}

// BenchmarkWays and BenchmarkContenders make the same calls under go test -bench, and so for
// benchstat.
func BenchmarkWays(b *testing.B) {
	for _, w := range ways {
		b.Run(strings.ReplaceAll(w.name, " ", "-"), func(b *testing.B) {
			call, _, done := w.open()
			defer done()
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

func BenchmarkContenders(b *testing.B) {
	for _, job := range jobs {
		asked := keys{all: 1}
		if job.refused {
			asked.closed = 1
		}
		for _, c := range job.contenders {
			b.Run(job.part+"/"+strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
				l := c.open(asked)
				if l.stop != nil {
					defer l.stop()
				}
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						l.call(0, nothing)
					}
				})
			})
		}
	}
}
