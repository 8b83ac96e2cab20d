package rules

import (
	"fmt"
	"log/slog"
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
		require.ErrorContains(t, b.Rollback(1), "no rules were loaded")
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
		assert.Equal(t, []Revision{first}, b.Revisions(), "content that comes back makes none")
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
		require.EqualError(t, b.Rollback(4), "penstock: revision 4 is not kept: there are 5 to 14")
		require.EqualError(t, b.Rollback(15), "penstock: revision 15 is not kept: there are 5 to 14")
		b.has("a 14")
	})
}

// A rollback pins each source until its own next content. known bug 158
func TestRollbackPins(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.file("one.yaml", "a 1"), b.file("two.yaml", "b 1")
		b.declare(one, two) // 1
		b.file("one.yaml", "a 2")
		b.settle() // 2
		b.file("two.yaml", "b 2")
		b.settle() // 3
		b.forget()
		require.NoError(t, b.Rollback(1))
		b.has("a 1, b 1")
		assert.Empty(t, b.told)
		last := b.Revisions()[3]
		assert.Equal(t, uint64(4), last.Number)
		assert.Equal(t, uint64(1), last.RolledBackTo)
		assert.Equal(t, b.Revisions()[0].Hash, last.Hash)
		assert.Equal(t, []string{"~ flow a: threshold 2 -> 1", "~ flow b: threshold 2 -> 1"}, last.Change.Lines())
		s := b.Status()
		assert.True(t, s.Pinned && s.OK && s.Sources[0].Pinned && s.Sources[1].Pinned)

		// Looks that find the same, and mistakes, change nothing.
		b.settle()
		long := time.Unix(1, 0)
		require.NoError(t, os.Chtimes(one, long, long))
		write(t, two, []byte("flow: 1"))
		b.settle()
		b.has("a 1, b 1")
		assert.Len(t, b.outcomes(), 1)
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{{ID: "c", Resource: "c"}}})) // 5
		b.has("a 1, b 1, c 0")

		// Each one's news end its own pin only.
		b.file("one.yaml", "a 3")
		b.settle() // 6
		b.has("a 3, b 1, c 0")
		s = b.Status()
		assert.False(t, s.Sources[0].Pinned)
		assert.True(t, s.Sources[1].Pinned)
		b.file("two.yaml", "b 2") // as it was when it was rolled back
		b.settle()
		b.has("a 3, b 1, c 0")
		require.Len(t, b.told, 1)
		assert.True(t, b.told[0].Pinned)
		assert.True(t, b.Status().Pinned && b.Status().OK)
		b.file("two.yaml", "b 3")
		b.settle() // 7
		b.has("a 3, b 3, c 0")
		assert.False(t, b.told[0].Pinned)
		assert.False(t, b.Status().Pinned)

		require.NoError(t, b.Rollback(6))
		b.has("a 3, b 1, c 0")
		require.NoError(t, b.Rollback(8)) // the newest
		b.has("a 3, b 1, c 0")
		require.NoError(t, b.Rollback(7)) // which takes it back
		b.has("a 3, b 3, c 0")
		assert.False(t, b.Status().Pinned)
		require.NoError(t, b.Rollback(3)) // when code said nothing
		b.has("a 2, b 2")
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{{ID: "c", Resource: "c", Threshold: 1}}}))
		b.has("a 2, b 2, c 1")
	})
}

// What a rollback can't put in force leaves everything as it is.
func TestRollbackRefused(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1"))
		b.file("one.yaml", "a 2")
		b.settle()
		b.refusing(os.ErrInvalid)
		require.ErrorIs(t, b.Rollback(1), os.ErrInvalid)
		b.refusing(nil)
		b.has("a 2")
		assert.Len(t, b.Revisions(), 2)
		assert.False(t, b.Status().Pinned)
		b.file("one.yaml", "a 3")
		b.settle()
		b.has("a 3")
	})
}

// A panic of what applies leaves the Loader as it was, and usable.
func TestRollbackThatPanics(t *testing.T) {
	panics := false
	l := NewLoader(func(Set) error {
		if panics {
			panic("no")
		}
		return nil
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, l.Load(flowSet("a", 1)))
	require.NoError(t, l.Load(flowSet("a", 2)))
	panics = true
	require.Panics(t, func() { _ = l.Rollback(1) })
	panics = false
	require.True(t, l.loading.TryLock(), "a lock that is still held blocks every load")
	l.loading.Unlock()
	require.NoError(t, l.Rollback(1))
	require.Equal(t, uint64(3), l.Status().Number)
}

func flowSet(id string, threshold float64) Set {
	return Set{Flow: []flow.Rule{{ID: id, Resource: id, Threshold: threshold}}}
}

// What code loads is one source, from a file or not: a rollback from the one to the other brings back
// what the next load replaces, and what Edit gets.
func TestRollbackOfCodeUnderAnotherName(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		path := b.file("a.yaml", "a 1")
		loadFile := func() {
			_, err := b.LoadFile(path)
			require.NoError(t, err)
		}
		edited := func() (got Set) {
			require.ErrorIs(t, b.Edit(func(s Set) (Set, error) { got = s; return s, os.ErrClosed }), os.ErrClosed)
			return got
		}
		loadFile()                                  // 1
		require.NoError(t, b.Load(flowSet("a", 2))) // 2
		b.refusing(os.ErrInvalid)
		require.ErrorIs(t, b.Rollback(1), os.ErrInvalid)
		b.refusing(nil)
		assert.Equal(t, codeName, b.Status().Source)
		require.NoError(t, b.Rollback(1)) // 3
		b.has("a 1")
		assert.Equal(t, path, b.Status().Source)
		assert.True(t, b.Status().Pinned)
		require.Equal(t, 1.0, edited().Flow[0].Threshold)
		require.NoError(t, b.Load(flowSet("a", 3))) // 4
		b.has("a 3")
		require.NoError(t, b.Rollback(1))
		loadFile()
		b.has("a 1")
		require.NoError(t, b.Rollback(4))
		require.Equal(t, 3.0, edited().Flow[0].Threshold)
		require.NoError(t, b.Load(flowSet("a", 5)))
		b.has("a 5")
		assert.Len(t, b.Status().Sources, 1)
	})
}

// LoadFile replaces what a rollback has brought back of a watch of the file that has ended.
func TestLoadFileOfASourceThatCameBack(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		path := b.file("a.yaml", "a 1")
		b.declare(path)() // 1
		require.NoError(t, b.Load(flowSet("b", 2)))
		require.NoError(t, b.Rollback(1))
		b.file("a.yaml", "a 3")
		_, err := b.LoadFile(path)
		require.NoError(t, err)
		b.has("a 3")
		assert.Len(t, b.Status().Sources, 1)
	})
}

// A file that a rollback has brought back, and that returns with a mistake, is one source.
func TestStatusOfASourceThatCameBack(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.file("d/10.yaml", "a 1")
		path := b.file("d/20.yaml", "b 1")
		b.declare(filepath.Join(b.dir, "d"))
		require.NoError(t, os.Remove(path))
		b.settle()
		require.NoError(t, b.Rollback(1))
		write(t, path, []byte("flow: 1"))
		b.settle()
		b.has("a 1, b 1")
		s := b.Status()
		require.Len(t, s.Sources, 3)
		back := s.Sources[2]
		assert.Equal(t, path, back.Source)
		assert.Equal(t, 1, back.Rules)
		assert.NotEmpty(t, back.Hash)
		assert.True(t, back.Watching && back.Pinned && !back.OK)
		require.Error(t, back.LastError)
	})
}

// A source that was refused for a conflict is right once a rollback has put in force what it says; one that
// comes into force after it has become unreadable is not.
func TestStatusOfWhatHadToWait(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1"), b.file("two.yaml", "b 1, c 1")) // 1
		b.file("two.yaml", "b 2")
		b.settle() // 2
		b.file("one.yaml", "a 1, c 2")
		b.settle() // 3
		two := b.file("two.yaml", "b 1, c 1")
		b.settle()
		b.has("a 1, c 2, b 2")
		assert.False(t, b.Status().Sources[1].OK)
		require.NoError(t, b.Rollback(1))
		b.has("a 1, b 1, c 1")
		s := b.Status()
		assert.True(t, s.Sources[0].Pinned && s.OK)
		assert.False(t, s.Sources[1].Pinned)

		require.NoError(t, b.Rollback(3))
		write(t, two, []byte("flow: 1"))
		b.settle()
		require.NoError(t, b.Rollback(1))
		b.has("a 1, b 1, c 1")
		assert.False(t, b.Status().OK, "the file has a mistake")
		require.NoError(t, b.Rollback(3))
		b.file("two.yaml", "b 3, c 3")
		b.settle()
		write(t, two, []byte("flow: 1"))
		b.settle()
		b.file("one.yaml", "a 4")
		b.settle()
		b.has("a 4, b 3, c 3")
		assert.False(t, b.Status().Sources[1].OK, "it came into force, and has a mistake since")
	})
}

// Sources that are gone come back by a rollback, until there is one of their name again.
func TestRollbackToSourcesThatAreGone(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.file("d/10.yaml", "a 1")
		path := b.file("d/20.yaml", "b 1")
		other := b.file("other.yaml", "c 1")
		b.declare(filepath.Join(b.dir, "d"))
		end := b.declare(other) // 2
		end()
		require.NoError(t, os.Remove(path))
		b.settle() // 3: without both
		b.has("a 1")
		require.NoError(t, b.Rollback(2))
		b.has("a 1, b 1, c 1")
		b.file("d/10.yaml", "a 2")
		b.settle()
		b.has("a 2, b 1, c 1")
		s := b.Status()
		require.Len(t, s.Sources, 4)
		assert.True(t, s.Sources[2].Source == path || s.Sources[3].Source == other)

		write(t, path, []byte("flow: 1"))
		b.settle()
		b.has("a 2, b 1, c 1")
		b.file("d/20.yaml", "b 2, c 2")
		b.settle()
		assert.Equal(t, []string{`d/20.yaml:3:5: flow[1]: the id "c" is also that of flow[0] in other.yaml:2:5` + twice}, b.outcomes())
		b.has("a 2, b 1, c 1")
		b.file("d/20.yaml", "b 2")
		b.settle()
		b.has("a 2, b 2, c 1")
		b.file("other.yaml", "c 3")
		b.declare(other)
		b.has("a 2, b 2, c 3")
		assert.False(t, b.Status().Pinned)
		require.NoError(t, b.Rollback(b.Revisions()[2].Number)) // without both
		b.has("a 1")
		b.settle()
		b.has("a 1")
	})
}

// Whatever comes in whatever order, what is in force is what a naive account of the sources says:
// a map of what each had good last, no ID of which stands twice.
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
				// What goes together with the rest is in force, the one with news at the expense
				// of what waits, and of what waits all that doesn't clash.
				good = goingTogether(wanted, good, i)
				b.has(strings.Join(slices.Concat(good...), ", "))
				for j, s := range b.Status().Sources {
					assert.Equal(t, slices.Equal(good[j], wanted[j]), s.OK, "step %d, %s", step, names[j])
				}
			}
		})
	}
}

// goingTogether is what is in force when source i has news.
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

// clashing are the sources with an ID that another has.
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

// 10,000 rules from 20 files, and one rule of one file changes: the revision says so in one line.
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
		require.Len(t, b.told, 1)
		assert.Equal(t, []string{`~ flow "rule 3500": threshold 100 -> 50`}, b.told[0].Change.Lines())
		last := b.Revisions()[1]
		assert.Equal(t, []string{`~ flow "rule 3500": threshold 100 -> 50`}, last.Change.Lines())
		assert.Equal(t, []string{paths[7]}, last.Sources)
	})
}

// manyFiles are 20 files of 500 rules each, that are old.
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
