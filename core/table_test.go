package core_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// rule is the least that a Table can hold.
type rule struct {
	id, resource string
	regex        bool
	mode         core.Mode
	value        int
	compared     *int // counts the calls of Equal
	byDefault    bool // then resource lists what it leaves out
}

func (r rule) Info() core.RuleInfo {
	if r.byDefault {
		return core.RuleInfo{ID: r.id, Resource: "*", Mode: r.mode, Default: true, Except: strings.Split(r.resource, ",")}
	}
	return core.RuleInfo{ID: r.id, Resource: r.resource, Regex: r.regex, Mode: r.mode}
}

func (r rule) Like() string { return r.resource }

func (r rule) WithID(id string) rule {
	r.id = id
	return r
}

func (r rule) Equal(other rule) bool {
	if r.compared != nil {
		*r.compared++
	}
	return r == other
}

// controller notes what it was built from.
type controller struct {
	rule     rule
	resource string
	old      *controller
}

func table(t *testing.T, rules ...rule) *core.Table[rule, controller] {
	t.Helper()
	tb, err := core.NewTable(rules, func(r rule, resource *core.Resource, old *controller) *controller {
		return &controller{r, resource.Name(), old}
	})
	require.NoError(t, err)
	return tb
}

func ids(rules []rule) string {
	var all []string
	for _, r := range rules {
		all = append(all, r.id)
	}
	return strings.Join(all, " ")
}

func TestTableFindsRulesInTheirOrder(t *testing.T) {
	tb := table(t,
		rule{id: "all", resource: ".*", regex: true},
		rule{id: "orders", resource: "orders"},
		rule{id: "off", resource: "orders", mode: core.Off},
		rule{id: "or", resource: "orders|carts", regex: true},
		rule{id: "shadow", resource: "orders", mode: core.Shadow},
		rule{id: "part", resource: "order", regex: true},
		rule{id: "off too", resource: ".*", regex: true, mode: core.Off},
		rule{id: "dot", resource: "o.ders", regex: true},
		rule{id: "lines", resource: "(?m)orders$", regex: true},
		rule{id: "carts", resource: "carts"},
	)
	for resource, want := range map[string]string{
		"orders":        "all orders or shadow dot lines",
		"carts":         "all or carts",
		"order":         "all part",
		"xorders":       "all",
		"orders2":       "all",
		"o.ders":        "all dot",
		"orders|carts":  "all",
		"orders\nmore":  "all",
		"orders\n":      "all",
		"":              "all",
		"ORDERS":        "all",
		"sub\norders":   "all",
		"o\u00e9ders":   "all dot",
		"o\xffders":     "all dot",
		"ordersorders":  "all",
		"(overflow)":    "all or part dot lines", // it stands for any name
		"machine-root":  "all",
		"orders|orders": "all",
	} {
		assert.Equal(t, want, ids(tb.For(resource)), "%q", resource)
	}
}

func TestTableRefusesAPatternThatIsNone(t *testing.T) {
	_, err := core.NewTable([]rule{{id: "r", resource: "(", regex: true}},
		func(rule, *core.Resource, *controller) *controller { return nil })
	require.ErrorContains(t, err, `rule "r": is no regular expression: missing closing ): "("`)
}

func TestTableKeepsOneControllerForEachRuleAndResource(t *testing.T) {
	e, _ := newEngine(t, core.Config{})
	orders, carts := e.Resource("orders", 0), e.Resource("carts", 0)
	tb := table(t, rule{id: "a", resource: ".*", regex: true}, rule{id: "b", resource: "orders"})
	bound := tb.Bind(orders)
	require.Len(t, bound, 2)
	assert.Equal(t, controller{rule{id: "a", resource: ".*", regex: true}, "orders", nil}, *bound[0])
	assert.Equal(t, bound, tb.Bind(orders))
	require.Len(t, tb.Bind(carts), 1)
	assert.NotSame(t, bound[0], tb.Bind(carts)[0], "each resource has its own")
	made := 0
	tb.Each(func(*controller) { made++ })
	assert.Equal(t, 3, made)

	var done sync.WaitGroup
	fresh := table(t, rule{id: "a", resource: ".*", regex: true})
	for range 8 {
		done.Go(func() { fresh.Bind(orders) })
	}
	done.Wait()
	made = 0
	fresh.Each(func(*controller) { made++ })
	assert.Equal(t, 1, made)
}

func TestTableForgets(t *testing.T) {
	e, _ := newEngine(t, core.Config{})
	orders := e.Resource("orders", 0)
	tb := table(t, rule{id: "a", resource: ".*", regex: true}, rule{id: "b", resource: "orders"})
	before := tb.Bind(orders)
	tb.Forget("orders")
	assert.Equal(t, before, tb.Bind(orders), "it has not left")
	orders.Retire(true)
	tb.Forget("orders")
	after := tb.Bind(orders)
	assert.NotSame(t, before[0], after[0])
	assert.Same(t, before[1], after[1], "a resource that is named by a rule doesn't leave")
}

// What belongs to all controllers of a resource goes with the last of them, and a rule
// that is off forgets a resource that leaves like the others.
func TestTableForgetsWhatIsOff(t *testing.T) {
	e, _ := newEngine(t, core.Config{})
	orders := e.Resource("orders", 0)
	on, off := rule{id: "a", resource: ".*", regex: true}, rule{id: "b", resource: ".*", regex: true}
	first := table(t, on, off)
	was := first.Bind(orders)
	off.mode = core.Off
	tb := table(t, on, off)
	tb.Inherit(first, e.FindResource)
	gone := 0
	forget := func() { tb.ForgetAnd("orders", func() { gone++ }) }
	forget()
	assert.Zero(t, gone, "it has not left")
	orders.Retire(true)
	forget()
	assert.Equal(t, 1, gone)
	off.mode = core.Enforce
	orders.Retire(false)
	last := table(t, on, off)
	last.Inherit(tb, e.FindResource)
	for i, c := range last.Bind(orders) {
		assert.NotSame(t, was[i], c)
		assert.Nil(t, c.old)
	}
}

// A resource that left while it was in use comes back with its controllers, also if
// the rules were loaded anew in between.
func TestTableAdopts(t *testing.T) {
	e, _ := newEngine(t, core.Config{})
	orders := e.Resource("orders", 0)
	before := rule{id: "a", resource: ".*", regex: true}
	tb := table(t, before)
	was := tb.Bind(orders)[0]
	orders.Retire(true)
	tb.Forget("orders")
	tb.Adopt(orders, before, was)
	assert.Same(t, was, tb.Bind(orders)[0])
	tb.Adopt(orders, before, &controller{})
	assert.Same(t, was, tb.Bind(orders)[0], "what is there stays")

	changed := before
	changed.value = 1
	next := table(t, changed)
	next.Adopt(orders, before, was)
	assert.Same(t, was, next.Bind(orders)[0].old)

	other := table(t, rule{id: "b", resource: ".*", regex: true}, rule{id: "a", resource: "another"})
	other.Adopt(orders, before, was)
	assert.Nil(t, other.Bind(orders)[0].old)
	other.Each(func(c *controller) { assert.NotSame(t, was, c) })
}

func TestTableInherits(t *testing.T) {
	before := rule{id: "r", resource: "orders", value: 1}
	for _, tt := range []struct {
		name string
		next []rule
		want string // same: the old controller; built: a new one from the old; fresh: a new one; none
	}{
		{"unchanged", []rule{before}, "same"},
		{"changed", []rule{{id: "r", resource: "orders", value: 2}}, "built"},
		{"mode changed", []rule{{id: "r", resource: "orders", value: 1, mode: core.Shadow}}, "built"},
		{"moved among others", []rule{{id: "x", resource: "orders"}, before}, "same"},
		{"gone", nil, "none"},
		{"off", []rule{{id: "r", resource: "orders", value: 1, mode: core.Off}}, "none"},
		{"another ID", []rule{{id: "s", resource: "orders", value: 1}}, "built"},
		{"another ID, and changed", []rule{{id: "s", resource: "orders", value: 2}}, "built"},
		{"a second one like it", []rule{before, {id: "s", resource: "orders", value: 1}}, "fresh"},
		{"its ID for another, and another ID", []rule{{id: "r", resource: "orders", value: 2}, {id: "s", resource: "orders", value: 1}}, "fresh"},
		{"its ID for another, and a number", []rule{{id: "r", resource: "orders", value: 2}, {id: "r#2", resource: "orders", value: 1}}, "built"},
		{"another resource", []rule{{id: "r", resource: "carts", value: 1}}, "none"},
		{"a pattern that matches", []rule{{id: "r", resource: "or.*", regex: true, value: 1}}, "built"},
		{"a pattern that doesn't", []rule{{id: "r", resource: "ca.*", regex: true, value: 1}}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, core.Config{})
			orders := e.Resource("orders", 0)
			old := table(t, before)
			was := old.Bind(orders)[0]
			next := table(t, tt.next...)
			next.Inherit(old, e.FindResource)
			var is *controller
			if bound := next.Bind(orders); len(bound) > 0 {
				is = bound[len(bound)-1]
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
	next := table(t, before)
	next.Inherit(nil, nil)
}

func TestUniqueIDs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		declared []rule
		want     string
		err      string
	}{
		{name: "none"},
		{name: "declared", declared: []rule{{id: "a"}, {id: "b"}}, want: "a b"},
		{name: "made", declared: []rule{{resource: "x"}, {resource: "y"}}, want: "made:x made:y"},
		{name: "made from the same", declared: []rule{{resource: "x", value: 1}, {resource: "x", value: 2}, {resource: "x", value: 3}},
			want: "made:x made:x#2 made:x#3"},
		{name: "somebody has taken it", declared: []rule{{resource: "x", value: 1}, {resource: "x", value: 2}, {id: "made:x#2"}, {id: "made:x"}},
			want: "made:x#3 made:x#4 made:x#2 made:x"},
		{name: "declared twice", declared: []rule{{id: "a", value: 1}, {id: "b"}, {id: "a", value: 2}},
			err: `rules 0 and 2 have the same id "a": give each its own`},
		{name: "the same twice", declared: []rule{{resource: "x", value: 1}, {resource: "x", value: 2}, {resource: "x", value: 2}},
			err: "rules 1 and 2 are the same: remove one"},
		{name: "the same, but one has an ID", declared: []rule{{resource: "x"}, {id: "a", resource: "x"}}, want: "made:x a"},
		{name: "the same, one named like the other", declared: []rule{{id: "made:x", resource: "x"}, {resource: "x"}}, want: "made:x made:x#2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := core.UniqueIDs(tt.declared, normalized(tt.declared))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, ids(got))
		})
	}
}

func normalized(declared []rule) []rule {
	all := make([]rule, len(declared))
	for i, r := range declared {
		if r.id == "" {
			r.id = "made:" + r.resource
		}
		all[i] = r
	}
	return all
}

// A file may have 10,000 rules, all for one resource: the work must not grow with
// the square of their number.
func TestUniqueIDsOfManyRulesForOneResource(t *testing.T) {
	const n = 10_000
	compared := 0
	declared := make([]rule, n)
	for i := range declared {
		declared[i] = rule{resource: "x", value: i, compared: &compared}
	}
	got, err := core.UniqueIDs(declared, normalized(declared))
	require.NoError(t, err)
	assert.Equal(t, "made:x#10000", got[n-1].id)
	assert.LessOrEqual(t, compared, n)

	declared[n-1].value = 0
	_, err = core.UniqueIDs(declared, normalized(declared))
	assert.EqualError(t, err, fmt.Sprintf("rules 0 and %d are the same: remove one", n-1))
}
