package family_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/node"
)

// compiled is a minimal family.
type compiled struct {
	family.Compiled[rule, controller]
}

// bound are the controllers that decide on a call.
type bound []*controller

func (b bound) Ask(*engine.Invocation) engine.Verdict  { return engine.Verdict{} }
func (b bound) Take(*engine.Invocation) engine.Verdict { return engine.Verdict{} }

func (f *compiled) Bind(at *engine.Binding) engine.Checker {
	if b := bound(f.Hold(at)); len(b) > 0 {
		return b
	}
	return nil
}

// compile adds rules to the next revision.
func compile(b *engine.SnapshotBuilder, maker family.Maker[rule, controller], rules ...rule) (*compiled, error) {
	refusal := engine.NewCounted(core.BlockError{Kind: core.KindFlow}, nil, nil, nil)
	maker.Normalized = func(r rule) (rule, error) { return r, nil }
	maker.Refusal = func(*controller) *core.BlockError { return refusal }
	f := new(compiled)
	return f, family.Compile(b, core.KindFlow, rules, maker, f)
}

// put loads rules.
func put(t *testing.T, e *engine.Engine, rules ...rule) (f *compiled) {
	t.Helper()
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) (err error) {
		f, err = compile(b, maker, rules...)
		return err
	}))
	return f
}

// bound returns the controllers that a call by a name finds.
func (f *compiled) bound(t *testing.T, name string) (found bound) {
	t.Helper()
	entry, err := f.Engine.Enter(t.Context(), name, nil)
	require.NoError(t, err)
	entry.Exit()
	return f.kept(t, name)
}

// kept returns the controllers held at a resource, without a call.
func (f *compiled) kept(t *testing.T, name string) bound {
	t.Helper()
	r, ok := f.Engine.FindResource(name)
	require.True(t, ok)
	return slices.Collect(f.HeldBy(r).All())
}

func TestOneControllerForEachRuleAndResource(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	f := put(t, e, rule{ID: "a", resource: ".*", match: spec.MatchRegex}, rule{ID: "b", resource: "orders"})
	orders := f.bound(t, "orders")
	require.Len(t, orders, 2)
	assert.Equal(t, controller{rule{ID: "a", resource: ".*", match: spec.MatchRegex}, "orders", nil}, *orders[0])
	assert.Equal(t, orders, f.bound(t, "orders"))
	require.Len(t, f.bound(t, "carts"), 1)
	assert.NotSame(t, orders[0], f.bound(t, "carts")[0], "each resource has its own")
	made := 0
	f.Each(func(*controller) { made++ })
	assert.Equal(t, 3, made)

	var done sync.WaitGroup
	for range 8 {
		done.Go(func() { f.bound(t, "bills") })
	}
	done.Wait()
	made = 0
	f.Each(func(*controller) { made++ })
	assert.Equal(t, 4, made)
}

// A resource that rules name has its meters before the first call. Others get them with it.
func TestNamedResourcesAreReady(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	f := put(t, e, rule{ID: "a", resource: "orders"}, rule{ID: "b", resource: "x.*", match: spec.MatchRegex}, rule{ID: "c", resource: "or.*", match: spec.MatchRegex})
	require.Len(t, f.kept(t, "orders"), 1)
	assert.Len(t, f.bound(t, "orders"), 2)
	e.PinResource("xyz")
	assert.Empty(t, f.kept(t, "xyz"))
	assert.Len(t, f.bound(t, "xyz"), 1)
}

// State at a resource leaves with it and, if it was in use, returns with it, to the rules in force
// at that time. known bug 87
func TestResourcesTakeAlongWhatTheyHold(t *testing.T) {
	e, clock := newEngine(t, engine.Config{})
	all, named := rule{ID: "a", resource: ".*", match: spec.MatchRegex}, rule{ID: "b", resource: "orders"}
	f := put(t, e, all, named)
	before := f.bound(t, "orders")
	entry, err := e.Enter(t.Context(), "carts", nil)
	require.NoError(t, err)
	carts := f.kept(t, "carts")
	r := resource(t, e, "carts")
	entry.Exit()

	clock.Advance(time.Hour)
	assert.Positive(t, e.Tree().Evict(e.Now()))
	_, there := e.FindResource("carts")
	require.False(t, there)
	assert.Equal(t, before, f.bound(t, "orders"), "a resource that is named by a rule doesn't leave")
	made := 0
	f.Each(func(*controller) { made++ })
	assert.Equal(t, 2, made, "a resource that has left is not shown")

	all.value = 1
	put(t, e, all, named)
	all.value = 2
	f = put(t, e, rule{ID: "c", resource: ".*", match: spec.MatchRegex}, all, named)
	again := f.bound(t, "carts")
	require.Same(t, r, resource(t, e, "carts"), "a caller still has it")
	require.Len(t, again, 2)
	assert.Nil(t, again[0].old)
	assert.Same(t, carts[0], again[1].old)
}

func TestRulesGoOnFromThoseBefore(t *testing.T) {
	before := rule{ID: "r", resource: "orders", value: 1}
	for _, tt := range []struct {
		name string
		next []rule
		want string // same: the old controller; built: a new one from the old; fresh: a new one; none
	}{
		{"unchanged", []rule{before}, "same"},
		{"changed", []rule{{ID: "r", resource: "orders", value: 2}}, "built"},
		{"mode changed", []rule{{ID: "r", resource: "orders", value: 1, mode: spec.Shadow}}, "built"},
		{"moved among others", []rule{{ID: "x", resource: "orders"}, before}, "same"},
		{"gone", nil, "none"},
		{"off", []rule{{ID: "r", resource: "orders", value: 1, mode: spec.Off}}, "built"},
		{"another ID", []rule{{ID: "s", resource: "orders", value: 1}}, "built"},
		{"another ID, and changed", []rule{{ID: "s", resource: "orders", value: 2}}, "built"},
		{"a second rule like it", []rule{before, {ID: "s", resource: "orders", value: 1}}, "fresh"},
		{"its ID for another, and another ID", []rule{{ID: "r", resource: "orders", value: 2}, {ID: "s", resource: "orders", value: 1}}, "fresh"},
		{"its ID for another, and a number", []rule{{ID: "r", resource: "orders", value: 2}, {ID: "r#2", resource: "orders", value: 1}}, "built"},
		{"another resource", []rule{{ID: "r", resource: "carts", value: 1}}, "none"},
		{"a pattern that matches", []rule{{ID: "r", resource: "or.*", match: spec.MatchRegex, value: 1}}, "built"},
		{"a pattern that doesn't", []rule{{ID: "r", resource: "ca.*", match: spec.MatchRegex, value: 1}}, "none"},
		{"for what others are not about", []rule{{ID: "r", resource: "*"}}, "built"},
		{"which they are", []rule{{ID: "r", resource: "*"}, {ID: "s", resource: "or.*", match: spec.MatchRegex}}, "fresh"},
		{"but for those", []rule{{ID: "r", resource: "*", exclude: "orders,carts"}}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, engine.Config{})
			was := put(t, e, before).bound(t, "orders")[0]
			var is *controller
			if found := put(t, e, tt.next...).bound(t, "orders"); len(found) > 0 {
				is = found[len(found)-1]
			}
			switch tt.want {
			case "same":
				assert.Same(t, was, is)
			case "built":
				require.NotNil(t, is)
				assert.Same(t, was, is.old)
				assert.Equal(t, tt.next[len(tt.next)-1], is.rule)
			case "fresh":
				require.NotNil(t, is)
				assert.Nil(t, is.old)
			case "none":
				assert.Nil(t, is)
			}
		})
	}
}

// A rule that is off keeps its state, and continues from it, even if it changes to an expression
// that doesn't match, and back.
func TestWhatIsOffGoesOn(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	on := rule{ID: "a", resource: "or.*", match: spec.MatchRegex}
	was := put(t, e, on).bound(t, "orders")[0]
	off := on
	off.mode, off.resource = spec.Off, "no.*"
	f := put(t, e, off)
	assert.Empty(t, f.For("orders"))
	kept := f.bound(t, "orders")
	require.Len(t, kept, 1)
	assert.Same(t, was, kept[0].old)
	again := put(t, e, on).bound(t, "orders")
	require.Len(t, again, 1)
	assert.Same(t, kept[0], again[0].old)
}

// A resource without calls goes through any number of loads like others. Only the expressions of
// its state are matched; the next call matches the others.
func TestLoadsWithoutCalls(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	a := rule{ID: "a", resource: "or.*", match: spec.MatchRegex}
	f := put(t, e, a)
	was := f.bound(t, "orders")[0]
	for i := range 5 {
		a.value = i + 1
		f = put(t, e, rule{ID: fmt.Sprintf("b%d", i), resource: fmt.Sprintf("ord.*|%d", i), match: spec.MatchRegex}, a)
		kept := f.kept(t, "orders")
		require.Len(t, kept, 1)
		require.Same(t, was, kept[0].old)
		require.Equal(t, a, kept[0].rule)
		was = kept[0]
	}
	found := f.bound(t, "orders")
	require.Len(t, found, 2)
	assert.Equal(t, "b4", found[0].rule.ID)
	assert.Same(t, was, found[1])

	a.resource = "x.*"
	assert.Len(t, put(t, e, a, rule{ID: "b4", resource: "ord.*|4", match: spec.MatchRegex}).kept(t, "orders"), 1, "it no longer matches")
}

// While rules are replaced, no call waits: neither for a known resource whose state is rebuilt, nor
// for a new name, which is bound to the old rules or to the new ones. known bug 126
func TestNobodyWaitsForALoad(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Caps: node.Caps{Resources: 5}})
	rules := []rule{{ID: "a", resource: "orders"}, {ID: "b", resource: ".*", match: spec.MatchRegex}}
	put(t, e, rules...).bound(t, "orders")
	calls := 0
	call := func(name string) {
		calls++
		entry, err := e.Enter(t.Context(), name, nil)
		require.NoError(t, err)
		entry.Exit()
	}
	slow := maker
	slow.Build = func(r rule, _ *engine.Record, at *engine.Binding, old *controller) *controller {
		if at.Resource.Name() == "orders" { // while it is being handed over
			call("orders")
			call(fmt.Sprintf("new %d", calls))
		}
		at.BeforeUse(func(int64) {
			if at.Resource.Name() == "orders" {
				call("orders")
				call(fmt.Sprintf("new %d", calls))
			}
		})
		return maker.Build(r, nil, at, old)
	}
	for i := range rules {
		rules[i].value = 1
	}
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		call("orders")
		call("new at first")
		b.BeforePublishing(func(int64) {
			call("orders")
			call("new before")
		})
		_, err := compile(b, slow, rules...)
		return err
	}))
	assert.Equal(t, 2+2+4*2, calls, "some of them beyond the cap")
}
