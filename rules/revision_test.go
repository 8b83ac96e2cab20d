package rules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

func TestRevisions(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		assert.Empty(t, b.Revisions())
		require.NoError(t, b.Load(Set{}))
		assert.Empty(t, b.Revisions(), "nothing says anything")
		path := b.file("a.yaml", "a 1")
		b.declare(path)
		first := b.Revisions()[0]
		assert.Equal(t, uint64(1), first.Number)
		assert.Equal(t, b.Status().Hash, first.Hash)
		assert.Equal(t, b.Status().Sources[0].Hash, first.Hash, "that of the only content")
		assert.Equal(t, []string{path}, first.Sources)
		assert.Equal(t, []string{"+ flow a"}, first.Change.Lines())
		assert.Equal(t, "1 "+first.Hash+" +1 ~0 -0 "+path, first.String())

		write(t, path, []byte("flow: 1"))
		b.settle()
		b.file("a.yaml", "a 1")
		b.settle()
		assert.Equal(t, []Revision{first}, b.Revisions(), "restored content makes none")
		for i := range MaxRevisions + 3 {
			b.file("a.yaml", fmt.Sprint("a ", i+2))
			b.settle()
		}
		all := b.Revisions()
		require.Len(t, all, MaxRevisions)
		for i, r := range all {
			assert.Equal(t, uint64(5+i), r.Number)
			assert.Equal(t, []string{fmt.Sprintf("~ flow a: threshold %d -> %d", 4+i, 5+i)}, r.Change.Lines())
			assert.False(t, i > 0 && !r.Time.After(all[i-1].Time))
		}
		b.has("a 14")
	})
}

// A source that waited for another one, and is now in force, is not OK if it has become unreadable in
// the meantime.
func TestStatusOfWhatHadToWait(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1, c 2"), b.file("two.yaml", "b 2"))
		two := b.file("two.yaml", "b 3, c 3")
		b.settle()
		b.has("a 1, c 2, b 2")
		assert.False(t, b.Status().Sources[1].OK, "the other source has the id c")
		write(t, two, []byte("flow: 1"))
		b.settle()
		b.file("one.yaml", "a 4")
		b.settle()
		b.has("a 4, b 3, c 3")
		assert.False(t, b.Status().Sources[1].OK, "it came into force, and has a mistake since")
	})
}

func flowSet(id string, threshold float64) Set {
	return Set{Flow: []flow.Rule{{ID: id, Resource: id, Threshold: threshold}}}
}

// In any order of events, the rules in force match a naive account of the sources: a map of the
// last good rules of each, without a repeated ID.
func TestLoaderAtRandom(t *testing.T) {
	for seed := range uint64(30) {
		onBench(t, func(t *testing.T, b *bench) {
			r := rand.New(rand.NewPCG(seed, 1))
			names := []string{"a.yaml", "b.yaml", "c.yaml"}
			var paths []string
			for i, name := range names {
				paths = append(paths, b.file(name, fmt.Sprintf("first%d 0", i)))
			}
			b.declare(paths[:2]...)
			b.declare(paths[2])
			wanted := [][]string{{"first0 0"}, {"first1 0"}, {"first2 0"}}
			good := slices.Clone(wanted)
			for step := range 25 {
				i := r.IntN(3)
				var rules []string
				for id := range 4 {
					if r.IntN(3) == 0 {
						rules = append(rules, fmt.Sprintf("r%d %d", id, step+1))
					}
				}
				rules = append(rules, fmt.Sprintf("own%d %d", i, step+1))
				b.file(names[i], strings.Join(rules, ", "))
				b.settle()
				wanted[i] = rules
				// All compatible sources are in force: the changed source at the expense of
				// waiting sources, and waiting sources without a conflict.
				good = goingTogether(wanted, good, i)
				b.has(strings.Join(slices.Concat(good...), ", "))
				for j, s := range b.Status().Sources {
					assert.Equal(t, slices.Equal(good[j], wanted[j]), s.OK, "step %d, %s", step, names[j])
				}
			}
		})
	}
}

// goingTogether returns the rules in force when source i has changed.
func goingTogether(wanted, good [][]string, i int) [][]string {
	try := slices.Clone(wanted)
	for {
		clash := clashing(try)
		if len(clash) == 0 {
			return try
		}
		var back []int
		for _, j := range clash {
			if j != i && !slices.Equal(try[j], good[j]) {
				back = append(back, j)
			}
		}
		if len(back) == 0 {
			back = []int{i}
		}
		for _, j := range back {
			try[j] = good[j]
		}
	}
}

// clashing returns the sources with an ID that another has.
func clashing(all [][]string) (found []int) {
	of := make(map[string][]int)
	for i, rules := range all {
		for _, rule := range rules {
			id, _, _ := strings.Cut(rule, " ")
			of[id] = append(of[id], i)
		}
	}
	for _, who := range of {
		if len(who) > 1 {
			found = append(found, who...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// If one of 10,000 rules in 20 files changes, the revision reports it in one line.
func TestOneOfTenThousandRulesChanges(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		paths := manyFiles(t, b.dir)
		b.declare(paths...)
		require.Len(t, b.inForce.Flow, 10_000)
		text, err := os.ReadFile(paths[7])
		require.NoError(t, err)
		write(t, paths[7], []byte(strings.Replace(string(text), "threshold: 100}", "threshold: 50}", 1)))
		b.settle()
		require.Len(t, b.inForce.Flow, 10_000)
		require.Len(t, b.reloads, 1)
		assert.Equal(t, []string{`~ flow "rule 3500": threshold 100 -> 50`}, b.reloads[0].Change.Lines())
		last := b.Revisions()[1]
		assert.Equal(t, []string{`~ flow "rule 3500": threshold 100 -> 50`}, last.Change.Lines())
		assert.Equal(t, []string{paths[7]}, last.Sources)
	})
}

// manyFiles writes 20 old files of 500 rules each.
func manyFiles(t testing.TB, dir string) (paths []string) {
	t.Helper()
	for i := range 20 {
		text := []byte("flow:\n")
		for j := range 500 {
			n := 500*i + j
			text = fmt.Appendf(text, "  - {id: rule %d, resource: resource %d, threshold: 100}\n", n, n)
		}
		path := filepath.Join(dir, fmt.Sprintf("%02d.yaml", i))
		require.NoError(t, os.WriteFile(path, text, 0o600))
		require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		paths = append(paths, path)
	}
	return paths
}
