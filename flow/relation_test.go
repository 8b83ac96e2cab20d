package flow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// The relation and origin decide which calls a rule applies to, and whose calls it counts.
func TestOriginsAndRelations(t *testing.T) {
	orders := func(r flow.Rule) flow.Rule {
		r.Resource = "orders"
		return r
	}
	for _, tt := range []struct {
		name   string
		rules  []flow.Rule
		script []step
	}{
		{"everybody together", []flow.Rule{orders(flow.Rule{Threshold: 3, Origin: "default", Window: flow.Ring})}, []step{
			{0, "orders from app", 1, "pass"},
			{0, "orders from web", 1, "pass"},
			{0, "orders", 2, "pass, block"},
			{0, "orders from app", 1, "block"},
		}},
		{"one caller", []flow.Rule{orders(flow.Rule{Threshold: 2, Origin: "app", Window: flow.Ring})}, []step{
			{0, "orders from app", 3, "pass x2, block"},
			{0, "orders from web", 3, "pass x3"},
			{0, "orders", 3, "pass x3"},
		}},
		{"others, each on its own", []flow.Rule{
			orders(flow.Rule{Threshold: 2, Origin: "other", Window: flow.Ring}), orders(flow.Rule{Threshold: 4, Origin: "app", Window: flow.Ring}),
		}, []step{
			{0, "orders from web", 3, "pass x2, block"},
			{0, "orders from tom", 3, "pass x2, block"},
			{0, "orders from app", 5, "pass x4, block"},
			{0, "orders", 5, "pass x5"}, // no origin is not "other"
		}},
		{"callers with names that have a meaning are others", []flow.Rule{
			orders(flow.Rule{Threshold: 2, Origin: "other", Window: flow.Ring}),
		}, []step{
			{0, "orders from default", 3, "pass x2, block"},
			{0, "orders from other", 3, "pass x2, block"},
		}},
		{"a rule that is off names nobody", []flow.Rule{
			orders(flow.Rule{Threshold: 2, Origin: "other", Window: flow.Ring}), orders(flow.Rule{Threshold: 4, Origin: "app", Mode: spec.Off, Window: flow.Ring}),
		}, []step{
			{0, "orders from app", 3, "pass x2, block"},
		}},
		{"a caller and everybody", []flow.Rule{
			orders(flow.Rule{Threshold: 4, Window: flow.Ring}), orders(flow.Rule{Threshold: 2, Origin: "app", Window: flow.Ring}),
		}, []step{
			{0, "orders from app", 3, "pass x2, block"},
			{0, "orders", 3, "pass x2, block"},
		}},
		{"the path of a context", []flow.Rule{orders(flow.Rule{Threshold: 2, Relation: flow.Chain, Ref: "web", Window: flow.Ring})}, []step{
			{0, "orders in job", 3, "pass x3"},
			{0, "orders", 3, "pass x3"},
			{0, "orders in web", 3, "pass x2, block"},
		}},
		{"the default context has a name", []flow.Rule{orders(flow.Rule{Threshold: 2, Relation: flow.Chain, Ref: node.DefaultContext, Window: flow.Ring})}, []step{
			{0, "orders", 3, "pass x2, block"},
			{0, "orders in " + node.DefaultContext, 1, "block"},
			{0, "orders in web", 3, "pass x3"},
		}},
		{"a caller's path", []flow.Rule{orders(flow.Rule{Threshold: 2, Relation: flow.Chain, Ref: "web", Origin: "app", Window: flow.Ring})}, []step{
			{0, "orders in web from tom", 1, "pass"}, // counted there, but not refused
			{0, "orders in web from app", 2, "pass, block"},
			{0, "orders in web", 3, "pass x3"},
			{0, "orders in job from app", 3, "pass x3"},
		}},
		{"a path, in a queue", []flow.Rule{orders(flow.Rule{Threshold: 10, Relation: flow.Chain, Ref: "web", Behavior: flow.Throttle})}, []step{
			{0, "orders in web", 2, "pass, 100ms"},
			{0, "orders in job", 2, "pass x2"},
		}},
		{"another resource", []flow.Rule{orders(flow.Rule{Threshold: 2, Relation: flow.Associated, Ref: "sql", Window: flow.Ring})}, []step{
			{0, "orders", 5, "pass x5"}, // no call to sql yet
			{0, "sql", 1, "pass"},
			{0, "orders", 5, "pass x5"}, // the resource's own calls don't count
			{0, "sql", 1, "pass"},
			{0, "orders", 2, "block x2"},
			{0, "sql", 3, "pass x3"},
			{1000 * ms, "orders", 2, "pass x2"},
		}},
		{"another resource that nobody knows, with 0", []flow.Rule{orders(flow.Rule{Threshold: 0, Relation: flow.Associated, Ref: "sql", Window: flow.Ring})}, []step{
			{0, "orders", 2, "block x2"},
		}},
		{"another resource, to a caller", []flow.Rule{orders(flow.Rule{Threshold: 1, Relation: flow.Associated, Ref: "sql", Origin: "app", Window: flow.Ring})}, []step{
			{0, "sql", 1, "pass"},
			{0, "orders from app", 1, "block"},
			{0, "orders from web", 1, "pass"},
			{0, "orders", 1, "pass"},
		}},
		{"itself, with its own rule", []flow.Rule{
			orders(flow.Rule{ID: "own", Threshold: 3, Window: flow.Ring}), orders(flow.Rule{Threshold: 3, Relation: flow.Associated, Ref: "orders", Window: flow.Ring}),
		}, []step{
			{0, "orders", 4, "pass x3, block"},
		}},
		{"another resource and its own rule", []flow.Rule{
			orders(flow.Rule{Threshold: 2, Relation: flow.Associated, Ref: "sql", Window: flow.Ring}), {Resource: "sql", Threshold: 3, Window: flow.Ring},
		}, []step{
			{0, "sql", 5, "pass x3, block x2"},
			{0, "orders", 1, "block"},
			{500 * ms, "orders", 1, "block"},
			{1000 * ms, "orders", 1, "pass"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newGuard(t, tt.rules...).run(tt.script)
		})
	}
}

func TestAssociatedConcurrency(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 2, Metric: flow.Concurrency, Relation: flow.Associated, Ref: "sql"})
	exit := g.open(1, "sql")
	assert.Equal(t, 3, g.passes(3, "orders"))
	orders := g.open(5, "orders")
	more := g.open(1, "sql")
	assert.Equal(t, "block", g.outcome("orders"))
	exit()
	assert.Equal(t, "pass", g.outcome("orders"))
	more()
	orders()
}

func TestConcurrencyOfOrigins(t *testing.T) {
	g := newGuard(t,
		flow.Rule{Resource: "orders", Threshold: 2, Metric: flow.Concurrency, Origin: "app"},
		flow.Rule{Resource: "orders", Threshold: 1, Metric: flow.Concurrency, Origin: "other"},
		flow.Rule{Resource: "orders", Threshold: 1, Metric: flow.Concurrency, Relation: flow.Chain, Ref: "job"})
	app, web := g.open(2, "orders from app"), g.open(1, "orders from web")
	assert.Equal(t, "block", g.outcome("orders from app"))
	assert.Equal(t, "block", g.outcome("orders from web"))
	assert.Equal(t, "pass", g.outcome("orders from tom"))
	job := g.open(1, "orders in job")
	assert.Equal(t, "block", g.outcome("orders from tom in job"))
	app()
	web()
	job()
}

// Beyond the cap all other callers share one limit.
func TestOverflowOriginsAreLimited(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Origins: 3}},
		flow.Rule{Resource: "orders", Threshold: 2, Origin: "other"},
		flow.Rule{Resource: "orders", Threshold: 5, Origin: "app"})
	passed := 0
	for i := range 50 {
		passed += g.passes(3, fmt.Sprint("orders from x", i))
	}
	assert.Equal(t, 3*2+2, passed)
	assert.Equal(t, 5, g.passes(9, "orders from app"), "a named caller has its own node")
}

// Beyond the cap all other resources are one resource; a pattern still limits it.
// known bug 107
func TestOverflowResourcesAreLimited(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 3}},
		flow.Rule{Resource: "user/.*", Match: spec.MatchRegex, Threshold: 2},
		flow.Rule{Resource: "orders", Threshold: 5})
	passed := 0
	for i := range 50 {
		passed += g.passes(3, fmt.Sprint("user/", i))
	}
	assert.Equal(t, 3*2+2, passed)
	assert.Equal(t, 5, g.passes(9, "orders"), "a named resource has its own node")
	for i := range 50 {
		assert.Equal(t, 9, g.passes(9, fmt.Sprint("cart/", i)), "a pattern that doesn't match the name")
	}
}

// At the cap on call nodes, the path that a rule names is counted separately: other contexts don't
// use up its limit.
func TestNamedPathsAreNotLimitedWithTheOverflow(t *testing.T) {
	path := flow.Rule{ID: "path", Resource: "orders", Threshold: 2, Relation: flow.Chain, Ref: "web"}
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Calls: 1}}, path)
	g.passes(1, "carts")
	assert.Equal(t, 9, g.passes(9, "orders in job"), "no node left: counted on the overflow")
	assert.Equal(t, 2, g.passes(9, "orders in web"))
	_, ok := g.resource("orders").Calls().Find("web")
	assert.True(t, ok)
	assert.Equal(t, 1, g.Tree().Calls().Used(), "it takes no node")

	g.load()
	assert.Equal(t, 2, g.Tree().Calls().Used(), "an ordinary one now")
	g.load(path)
	assert.Equal(t, 1, g.Tree().Calls().Used())
	assert.Equal(t, 0, g.passes(9, "orders in web"))
}
