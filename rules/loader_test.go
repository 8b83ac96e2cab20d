package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

// bench is a Loader with its sources in a directory, on fake time.
type bench struct {
	*Loader
	t   *testing.T
	dir string

	mu      sync.Mutex // several watches may report at once
	inForce Set
	applied int
	refuse  error
	reloads []Reload
}

func onBench(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, dir: t.TempDir()}
		require.NoError(t, os.Chmod(b.dir, 0o700))
		b.Loader = NewLoader(func(set Set) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.refuse != nil {
				return b.refuse
			}
			b.inForce = set
			b.applied++
			return nil
		}, slog.New(slog.DiscardHandler))
		b.OnReload(func(r Reload) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reloads = append(b.reloads, r)
		})
		defer b.Close()
		test(t, b)
	})
}

// file writes a file of flow rules, as in "a 1, b 2": IDs and thresholds.
func (b *bench) file(name, rules string) (path string) {
	b.t.Helper()
	path = filepath.Join(b.dir, name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
	text := "flow: []\n"
	if rules != "" {
		text = "flow:\n"
		for rule := range strings.SplitSeq(rules, ", ") {
			id, threshold, _ := strings.Cut(rule, " ")
			text += fmt.Sprintf("  - {id: %s, resource: %s, threshold: %s}\n", id, id, threshold)
		}
	}
	write(b.t, path, []byte(text))
	return path
}

func (b *bench) declare(paths ...string) (end func()) {
	b.t.Helper()
	end, err := b.try(paths...)
	require.NoError(b.t, err)
	return end
}

func (b *bench) try(paths ...string) (end func(), err error) {
	ctx, end := context.WithCancel(b.t.Context())
	tune := defaultTuning
	tune.notify = newFake().open
	_, err = b.watch(ctx, paths, true, tune)
	if err != nil {
		end()
	}
	return end, err
}

// settle lets the watches poll.
func (b *bench) settle() {
	b.forget()
	after(2 * defaultTuning.poll)
}

// forget clears the recorded outcomes.
func (b *bench) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reloads = nil
}

// refusing makes apply refuse sets, or accept them again.
func (b *bench) refusing(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = err
}

// has fails unless these rules are in force, in this order.
func (b *bench) has(rules string) {
	b.t.Helper()
	var have []string
	for _, r := range b.inForce.Flow {
		have = append(have, fmt.Sprint(r.ID, " ", r.Threshold))
	}
	assert.Equal(b.t, rules, strings.Join(have, ", "))
}

// outcomes returns the outcomes since the last settle, without the directory.
func (b *bench) outcomes() (all []string) {
	for _, r := range b.reloads {
		text := strings.TrimPrefix(r.Source, b.dir+"/") + " " + r.Change.String()
		if r.Err != nil {
			text = strings.ReplaceAll(r.Err.Error(), b.dir+"/", "")
		} else if r.Left {
			text += " left"
		}
		all = append(all, text)
	}
	return all
}

const twice = ": give each its own, remove one, or declare that the later source wins"

func TestLoaderCombinesInDeclaredOrder(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{{ID: "code", Resource: "a", Threshold: 1}}}))
		b.declare(b.file("z.yaml", "z 1"), b.file("a.yaml", "a 1, b 2"))
		b.declare(b.file("m.yaml", "m 1"))
		b.has("code 1, z 1, a 1, b 2, m 1")
		assert.Equal(t, 3, b.applied, "a swap for each declaration")
		assert.Equal(t, []string{"z.yaml +1 ~0 -0", "a.yaml +2 ~0 -0", "m.yaml +1 ~0 -0"}, b.outcomes())

		b.file("a.yaml", "a 1, b 3")
		b.settle()
		b.has("code 1, z 1, a 1, b 3, m 1")
		assert.Equal(t, []string{"a.yaml +0 ~1 -0"}, b.outcomes())
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{{ID: "code", Resource: "a", Threshold: 2}}}))
		b.has("code 2, z 1, a 1, b 3, m 1")

		s := b.Status()
		assert.Len(t, s.Sources, 4)
		assert.True(t, s.OK && s.Watching)
		assert.Equal(t, 5, s.Rules)
		assert.Equal(t, uint64(5), s.Number)
	})
}

// An error in one source leaves its rules in force, and the others continue.
func TestLoaderKeepsWhatEachHadGood(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.file("one.yaml", "a 1"), b.file("two.yaml", "b 1")
		b.declare(one, two)
		write(t, one, []byte("flow: 1"))
		b.settle()
		b.file("two.yaml", "b 2")
		b.settle()
		b.has("a 1, b 2")
		require.NoError(t, os.Remove(one))
		b.settle()
		assert.Equal(t, []string{"stat one.yaml: no such file or directory"}, b.outcomes())
		b.file("two.yaml", "b 3")
		b.settle()
		b.has("a 1, b 3")
		s := b.Status()
		assert.False(t, s.OK)
		assert.False(t, s.Sources[0].OK)
		assert.True(t, s.Sources[1].OK)
		assert.ErrorContains(t, s.LastError, "no such file")
		b.file("one.yaml", "")
		b.settle()
		b.has("b 3")
		assert.True(t, b.Status().OK)
	})
}

// An ID in two sources is an error for the source that changed, with both names and positions. The
// source is retried when the other one changes. Rules without a conflict come into force.
// known bug 155
func TestLoaderConflicts(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.file("one.yaml", "a 1"), b.file("two.yaml", "b 1")
		b.declare(one)
		b.declare(two)
		b.file("two.yaml", "b 2, a 2")
		b.settle()
		assert.Equal(t, []string{`two.yaml:3:5: flow[1]: the id "a" is also that of flow[0] in one.yaml:2:5` + twice}, b.outcomes())
		b.has("a 1, b 1")
		b.file("one.yaml", "a 3, c 3") // its rules come into force even if others are refused
		b.settle()
		assert.Equal(t, []string{"one.yaml +1 ~1 -0"}, b.outcomes())
		b.has("a 3, c 3, b 1")
		b.file("one.yaml", "c 3") // gives the ID away
		b.settle()
		assert.Equal(t, []string{"one.yaml +0 ~0 -1", "two.yaml +1 ~1 -0"}, b.outcomes())
		b.has("c 3, b 2, a 2")
		assert.True(t, b.Status().OK)

		err := b.Load(Set{Flow: []flow.Rule{{ID: "x", Resource: "x"}, {ID: "c", Resource: "x"}}})
		require.EqualError(t, err, `code: flow[1]: the id "c" is also that of flow[0] in `+one+":2:5"+twice)
		_, err = b.try(b.file("three.yaml", "y 1"), b.file("four.yaml", "y 2, c 1"))
		require.Error(t, err)
		require.ErrorContains(t, err, `four.yaml:2:5: flow[0]: the id "y" is also that of flow[0] in `+b.dir+"/three.yaml:2:5")
		require.ErrorContains(t, err, `four.yaml:3:5: flow[1]: the id "c" is also that of flow[0] in `+one+":2:5")
		require.ErrorContains(t, err, `three.yaml:2:5: flow[0]: the id "y" is also that of flow[0] in `+b.dir+"/four.yaml:2:5")
		b.has("c 3, b 2, a 2")
		assert.Len(t, b.Status().Sources, 2)
	})
}

// Rules with derived IDs keep the IDs that they have in their own file.
func TestLoaderMadeIDs(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := filepath.Join(b.dir, "one.yaml"), filepath.Join(b.dir, "two.yaml")
		write(t, one, []byte("flow: [{resource: a, threshold: 1}, {resource: a, threshold: 2}]"))
		write(t, two, []byte("flow: [{resource: b, threshold: 1}]"))
		b.declare(two, one)
		b.has("flow:b 1, flow:a 1, flow:a#2 2")
		write(t, two, []byte("flow: [{resource: a, threshold: 3}]"))
		b.settle()
		assert.Equal(t, []string{`two.yaml:1:8: flow[0]: the id "flow:a" is also that of flow[0] in one.yaml:1:8` + twice}, b.outcomes())
		b.AllowOverrides()
		require.NoError(t, b.Load(Set{}))
		b.has("flow:a 1, flow:a#2 2")
	})
}

// Changes at the same time come into force at the same time.
// known bug 156
func TestLoaderMovesARuleWithoutAGap(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1, b 1"), b.file("two.yaml", "c 1"))
		b.file("one.yaml", "b 1")
		after(defaultTuning.poll + quiet/2) // the file was read at once
		b.file("two.yaml", "c 1, a 1")
		b.settle()
		b.has("b 1, c 1, a 1")
		assert.Equal(t, 2, b.applied)
		assert.Equal(t, []string{"one.yaml +0 ~0 -1", "two.yaml +1 ~0 -0"}, b.outcomes())
		all := b.Revisions()
		require.Len(t, all, 2)
		assert.True(t, all[1].Change.Empty())
		assert.Equal(t, []string{b.dir + "/one.yaml", b.dir + "/two.yaml"}, all[1].Sources)
	})
}

func TestLoaderLaterWins(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.AllowOverrides()
		base, service := b.file("base.yaml", "a 1, b 1"), b.file("service.yaml", "b 2, c 2")
		b.declare(base, service)
		b.has("a 1, b 2, c 2")
		over := []Override{{"flow", "b", base, service}}
		assert.Equal(t, over, b.reloads[0].Overrides)
		assert.Equal(t, over, b.reloads[1].Overrides)
		assert.Equal(t, over, b.Status().Overrides)
		assert.Equal(t, over, b.Revisions()[0].Overrides)
		assert.Equal(t, "flow b of "+base+", by "+service, over[0].String())
		b.file("service.yaml", "c 2")
		b.settle()
		b.has("a 1, b 1, c 2")
		assert.Empty(t, b.Status().Overrides)
		all := b.Revisions()
		assert.Equal(t, []string{"~ flow b: threshold 2 -> 1"}, all[1].Change.Lines(), "relative to the rules in force")
		assert.Equal(t, "+0 ~0 -1", b.reloads[0].Change.String(), "of the file")
	})
}

// The rule files of a directory are loaded in the order of their names; they can be added and removed.
func TestLoaderDirectory(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.file("d/20.yaml", "b 1")
		b.file("d/10.yml", "a 1")
		for _, other := range []string{"d/.hidden.yaml", "d/..data/x.yaml", "d/#20.yaml#", "d/~20.yaml", "d/20.yaml~", "d/20.yaml.swp", "d/README.md", "d/sub.yaml/x.yaml"} {
			b.file(other, "a 9")
		}
		dir := filepath.Join(b.dir, "d")
		b.declare(dir)
		b.has("a 1, b 1")
		assert.Equal(t, []string{"d/10.yml +1 ~0 -0", "d/20.yaml +1 ~0 -0"}, b.outcomes())
		write(t, filepath.Join(dir, "15.json"), []byte(`{"flow": [{"id": "c", "resource": "c", "threshold": 1}]}`))
		b.settle()
		b.has("a 1, c 1, b 1")
		assert.Equal(t, []string{"d/15.json +1 ~0 -0"}, b.outcomes())

		require.NoError(t, os.Remove(filepath.Join(dir, "10.yml")))
		b.file("d/20.yaml", "b 2")
		b.settle()
		b.has("c 1, b 2")
		assert.Equal(t, []string{"d/10.yml +0 ~0 -1 left", "d/20.yaml +0 ~1 -0"}, b.outcomes())
		assert.Len(t, b.Status().Sources, 3, "the directory, and its files")

		b.file("d/30.yaml", "d 1, b 1")
		b.settle()
		assert.Equal(t, []string{`d/30.yaml:3:5: flow[1]: the id "b" is also that of flow[0] in d/20.yaml:2:5` + twice}, b.outcomes())
		b.has("c 1, b 2")
		require.NoError(t, os.Rename(filepath.Join(dir, "30.yaml"), filepath.Join(dir, "20.yaml")))
		b.settle()
		b.has("c 1, d 1, b 1")

		_, err := b.try(dir)
		require.ErrorAs(t, err, new(*SourceError))
		_, err = b.try(filepath.Join(dir, "20.yaml"))
		require.ErrorContains(t, err, `the id "d" is also that of`)
	})
}

// If a directory is missing, empty or writable by everybody, its rules stay in force.
// known bug 157
func TestLoaderDirectoryAway(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.file("d/10.yaml", "a 1")
		b.file("d/20.yaml", "b 1")
		dir := filepath.Join(b.dir, "d")
		b.declare(dir)
		for name, c := range map[string]struct {
			spoil, mend func() error
			want        string
		}{
			"gone":        {func() error { return os.Rename(dir, dir+".away") }, func() error { return os.Rename(dir+".away", dir) }, "stat d: no such file or directory"},
			"for anybody": {func() error { return os.Chmod(dir, 0o777) }, func() error { return os.Chmod(dir, 0o700) }, "d: every user can add rule files (mode 0777): run chmod o-w" + allowIt},
			"empty": {
				func() error {
					return errors.Join(os.Rename(dir, dir+".away"), os.Mkdir(dir, 0o700))
				},
				func() error { return errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)) },
				"d: has no rule file (*.yaml, *.yml, *.json)",
			},
		} {
			if name == "for anybody" && !anyoneMayWriteHere() {
				continue
			}
			require.NoError(t, c.spoil())
			b.settle()
			assert.Equal(t, []string{c.want}, b.outcomes(), name)
			b.has("a 1, b 1")
			assert.False(t, b.Status().OK)
			require.NoError(t, c.mend())
			b.settle()
			assert.Equal(t, []string{"d +0 ~0 -0"}, b.outcomes(), name)
			assert.True(t, b.Status().OK)
		}
		require.NoError(t, os.Mkdir(filepath.Join(b.dir, "none"), 0o700))
		_, err := b.try(filepath.Join(b.dir, "none"))
		require.ErrorContains(t, err, "has no rule file")
	})
}

const allowIt = "; where modes mean nothing, allow it (AllowWritable, --allow-writable)"

func anyoneMayWriteHere() bool { return os.PathSeparator == '/' }

// A file that is rewritten by removing it first is never missed.
func TestLoaderDirectoryBridgesAGap(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		path := b.file("d/10.yaml", "a 1")
		b.file("d/20.yaml", "b 1")
		b.declare(filepath.Join(b.dir, "d"))
		require.NoError(t, os.Remove(path))
		b.forget()
		after(30*time.Second + 900*time.Millisecond)
		b.file("d/10.yaml", "a 2")
		after(2 * time.Second)
		assert.Equal(t, []string{"d/10.yaml +0 ~1 -0"}, b.outcomes())
		b.has("a 2, b 1")
	})
}

// A file that never settles is reported, and doesn't keep others waiting forever.
func TestLoaderAFileThatNeverSettles(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1"), b.file("two.yaml", "b 1"))
		b.forget()
		b.file("two.yaml", "b 2")
		for i := range 2000 { // a minute
			replace(t, filepath.Join(b.dir, "one.yaml"), fmt.Appendf(nil, "flow: [] # %d\n", i))
			after(30 * time.Millisecond)
		}
		assert.ElementsMatch(t, []string{"one.yaml: " + errUnsettled.Error(), "two.yaml +0 ~1 -0"}, b.outcomes())
		b.has("a 1, b 2")
	})
}

// Rules that can't be applied are reported for the source that changed, and retried with its next
// change.
func TestLoaderRefused(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.declare(b.file("one.yaml", "a 1"))
		b.declare(b.file("two.yaml", "b 1"))
		b.refusing(errors.New("no"))
		b.file("one.yaml", "a 2")
		b.settle()
		assert.Equal(t, []string{"one.yaml: applying: no"}, b.outcomes())
		require.EqualError(t, b.Load(Set{Flow: []flow.Rule{{Resource: "c"}}}), "no")
		b.settle()
		assert.Empty(t, b.outcomes())
		b.refusing(nil)
		b.has("a 1, b 1")
		b.file("two.yaml", "b 2")
		b.settle()
		assert.ElementsMatch(t, []string{"one.yaml +0 ~1 -0", "two.yaml +0 ~1 -0"}, b.outcomes())
		b.has("a 2, b 2")
	})
}

// The rules of a watch that has ended stay until the next swap.
func TestLoaderEnds(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one := b.declare(b.file("one.yaml", "a 1"))
		two := b.declare(b.file("two.yaml", "b 1"))
		one()
		after(time.Minute)
		b.has("a 1, b 1")
		assert.False(t, b.Status().Sources[0].Watching)
		b.file("one.yaml", "a 2")
		b.settle()
		assert.Empty(t, b.outcomes())
		b.file("two.yaml", "b 2")
		b.settle()
		b.has("b 2")
		two()
		b.declare(filepath.Join(b.dir, "one.yaml"))
		b.has("a 2")
		b.Close()
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{{ID: "c", Resource: "c"}}}))
		b.has("c 0")
		_, err := b.try(filepath.Join(b.dir, "two.yaml"))
		require.ErrorIs(t, err, errClosed)
		b.has("c 0")
	})
}

// Two concurrent edits lose nothing. If one fails, it changes nothing.
func TestLoaderEdit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		rule := func(name string) flow.Rule { return flow.Rule{ID: name, Resource: name, Threshold: 1} }
		b.declare(b.file("rules.yaml", "file 1"))
		require.NoError(t, b.Load(Set{Flow: []flow.Rule{rule("by-hand")}}))

		var edits sync.WaitGroup
		for i := range 10 {
			edits.Go(func() {
				assert.NoError(t, b.Edit(func(loaded Set) (Set, error) {
					loaded.Flow = append(loaded.Flow, rule(fmt.Sprint("edit-", i)))
					return loaded, nil
				}))
			})
		}
		edits.Wait()
		assert.Len(t, b.inForce.Flow, 12, "one of the file, one by hand, ten edits")

		bad := errors.New("no")
		before := b.applied
		err := b.Edit(func(loaded Set) (Set, error) {
			assert.Len(t, loaded.Flow, 11, "rules of the file must not be edited")
			loaded.Flow[0].Threshold = 5 // of a copy
			return Set{}, bad
		})
		assert.Equal(t, bad, err)
		assert.Equal(t, before, b.applied)

		err = b.Edit(func(loaded Set) (Set, error) {
			loaded.Flow = append(loaded.Flow, rule("file"))
			return loaded, nil
		})
		require.ErrorContains(t, err, "rules.yaml")
		require.NoError(t, b.Edit(func(loaded Set) (Set, error) {
			assert.Len(t, loaded.Flow, 11)
			assert.EqualValues(t, 1, loaded.Flow[0].Threshold)
			return Set{}, nil
		}))
		assert.Len(t, b.inForce.Flow, 1, "an empty Set is nothing loaded by hand")
		require.NoError(t, b.Edit(func(loaded Set) (Set, error) {
			assert.Zero(t, loaded.Len())
			return loaded, nil
		}))
	})
}
