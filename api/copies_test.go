package api_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// holding returns a rule of each family, with a value in every field that can hold shared memory.
func holding() rules.Set {
	others := []string{"none", "health"} // "*" applies to orders, and no resource has its own rule
	return rules.Set{
		Authority: []authority.Rule{{Resource: "*", Exclude: others, Origins: []string{"app", "web"}}},
		System:    []system.Rule{{Metric: system.QPS, Threshold: 1e9}},
		Hotspot: []hotspot.Rule{{
			Resource: "*", Exclude: others, Keys: []string{"param user", "resource"}, Threshold: 0, Plans: map[string]float64{"pro": 0}, Notify: []string{"80%"},
			Exceptions: []hotspot.Exception{{Values: []argument.Value{argument.Of("ann"), argument.Of("*")}, Threshold: 1e9}},
		}},
		Flow: []flow.Rule{
			{Resource: "stock*", Match: spec.MatchPrefix, Exclude: others, Threshold: 1e9, Behavior: flow.Throttle, Share: spec.Share{By: "origin", Weights: map[string]int{"app": 2}}},
			{Resource: "*", Exclude: others, Threshold: 1e9, Notify: []string{"80%"}},
		},
		Isolation: []isolation.Rule{{Resource: "*", Exclude: others, Threshold: 1e9, MaxQueue: 1, MaxWait: 1, Share: spec.Share{By: "origin", Weights: map[string]int{"app": 2}}}},
		Adaptive:  []adaptive.Rule{{Resource: "*", Exclude: others}},
		Breaker:   []breaker.Rule{{Resource: "*", Exclude: []string{"orders", "health"}, MinCalls: 1}},
		Cluster:   []rules.Cluster{{Namespace: "shop"}},
		Upstream:  []upstream.Rule{{Resource: "*", Exclude: others, Obey: true}},
		Outlier:   []outlier.Rule{{Resource: "*", Exclude: others, Threshold: 1}},
		Groups:    []gateway.Group{{ID: "shop", Paths: []gateway.Path{{Path: "/orders"}}}},
		Gateway:   []gateway.Rule{{Group: "shop", Threshold: 1e9}},
	}
}

// Sets that a user passes in or gets share no mutable memory with the guard. Sets and guard are
// searched by reflection, so that a new field of a rule is part of this test.
// known bug 109
func TestRulesAreCopiedInAndOut(t *testing.T) {
	g := newGuard(t, api.Config{Clock: clocks.NewManual(time.Unix(1_700_000_000, 0))})
	in := holding()
	require.NoError(t, g.LoadRules(in))
	e, err := g.Entry(api.WithOrigin(api.WithContext(t.Context(), "web"), "app"), "orders", api.Inbound(), api.Param("user", "ann"))
	require.NoError(t, err)
	defer e.Exit()

	families := g.Engine().Rules()
	ofTables := rules.Set{
		Authority: families.Family(core.KindAuthority).(interface{ Rules() []authority.Rule }).Rules(),
		System:    families.Family(core.KindSystem).(interface{ Rules() []system.Rule }).Rules(),
		Hotspot:   families.Family(core.KindHotspot).(interface{ Rules() []hotspot.Rule }).Rules(),
		Flow:      families.Family(core.KindFlow).(interface{ Rules() []flow.Rule }).Rules(),
		Isolation: families.Family(core.KindIsolation).(interface{ Rules() []isolation.Rule }).Rules(),
		Adaptive:  families.Family(core.KindAdaptive).(interface{ Rules() []adaptive.Rule }).Rules(),
		Breaker:   families.Family(core.KindBreaker).(interface{ Rules() []breaker.Rule }).Rules(),
		Upstream:  families.Family(core.KindUpstream).(interface{ Rules() []upstream.Rule }).Rules(),
		Outlier:   families.Family(core.KindOutlier).(interface{ Rules() []outlier.Rule }).Rules(),
		Cluster:   g.Rules().Cluster,
	}
	ofTablesForOne := rules.Set{
		Authority: families.Family(core.KindAuthority).(interface{ For(string) []authority.Rule }).For("orders"),
		Hotspot:   families.Family(core.KindHotspot).(interface{ For(string) []hotspot.Rule }).For("orders"),
		Breaker:   families.Family(core.KindBreaker).(interface{ For(string) []breaker.Rule }).For("payments"),
	}
	owners := search(reflect.ValueOf(g), "the guard")
	require.Greater(t, len(owners), 100, "the search came nowhere")
	for _, s := range []struct {
		name string
		set  rules.Set
		part bool
	}{
		{name: "handed in", set: in},
		{name: "shown", set: g.Rules()},
		{name: "shown again", set: g.Rules()},
		{name: "of the tables", set: ofTables},
		{name: "of the tables for one resource", set: ofTablesForOne, part: true},
	} {
		if s.name == "of the tables" {
			s.set.Groups, s.set.Gateway = holding().Groups, holding().Gateway // which have no rules themselves
		}
		if !s.part {
			filled(t, reflect.ValueOf(s.set), s.name)
		}
		for at, path := range search(reflect.ValueOf(s.set), s.name) {
			assert.Empty(t, owners[at], "%s is shared", path)
			owners[at] = path
		}
	}
}

// Changing the result of Rules, or a set after loading it, changes no verdict, even if another load
// fails afterwards.
func TestChangedCopiesChangeNoVerdict(t *testing.T) {
	g := newGuard(t, api.Config{Clock: clocks.NewManual(time.Unix(1_700_000_000, 0))})
	in := holding()
	require.NoError(t, g.LoadRules(in))
	spoil := func(set rules.Set) {
		set.Authority[0].Origins[0] = "nobody"
		set.Hotspot[0].Exceptions[0].Values[0] = argument.Of("bob")
		set.Hotspot[0].Keys[0] = "param tenant"
		set.Hotspot[0].Plans["pro"] = 1e9
		set.Breaker[0].Exclude[1] = "nothing"
	}
	failing := func(context.Context) error { return errors.New("out of order") }
	for round, change := range []func(){
		func() {},
		func() { spoil(in) },
		func() { spoil(g.Rules()) },
		func() {
			set := g.Rules()
			spoil(set)
			set.Flow[0].Threshold = -1
			require.Error(t, g.LoadRules(set))
		},
	} {
		change()
		ctx := api.WithOrigin(api.WithContext(t.Context(), "web"), "app")
		e, err := g.Entry(ctx, "orders", api.Param("user", "ann"))
		require.NoError(t, err, "round %d", round)
		e.Exit()
		for range 3 { // without a breaker
			require.NotErrorIs(t, g.Do(ctx, "health", failing), core.ErrBlocked, "round %d", round)
		}
	}
}

// filled fails if a list is empty in all rules: the set would not show that it is copied.
func filled(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	for at := range empty(v, path) {
		require.Fail(t, at+" is empty: put something into it in holding")
	}
}

// empty returns the paths of empty lists and the like, in the items of a list the paths that are empty in
// each item.
func empty(v reflect.Value, path string) map[string]bool {
	all := map[string]bool{}
	switch v.Kind() {
	case reflect.Struct:
		for field, value := range v.Fields() {
			maps.Copy(all, empty(value, path+"."+field.Name))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			all[path] = true
		}
		for i := range v.Len() {
			item := empty(v.Index(i), path+"[]")
			if i == 0 {
				all = item
			}
			maps.DeleteFunc(all, func(at string, _ bool) bool { return !item[at] })
		}
	case reflect.Map, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func:
		all[path] = true
		if !v.IsNil() {
			delete(all, path)
		}
	}
	return all
}

// search returns the addresses of all mutable memory reachable from v, and the paths to it.
func search(v reflect.Value, path string) map[uintptr]string {
	s := searcher{found: map[uintptr]string{}, seen: map[visit]bool{}}
	s.walk(v, path)
	return s.found
}

type searcher struct {
	found map[uintptr]string
	seen  map[visit]bool
}

type visit struct {
	at  uintptr
	typ reflect.Type
	len int
}

// note reports whether v leads to memory not seen before.
func (s *searcher) note(v reflect.Value, length int, path string) bool {
	at := visit{v.Pointer(), v.Type(), length}
	if at.at == 0 || s.seen[at] {
		return false
	}
	s.seen[at] = true
	if s.found[at.at] == "" {
		s.found[at.at] = path
	}
	return true
}

func (s *searcher) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Interface:
		if typ := v.Elem(); typ.IsValid() && typ.Type() != reflect.TypeOf(reflect.TypeFor[int]()) {
			s.walk(typ, path)
		}
	case reflect.Pointer:
		if !v.IsNil() && s.note(v, 1, path) {
			s.walk(v.Elem(), path)
		}
	case reflect.Map:
		if !v.IsNil() && s.note(v, 1, path) {
			for k, e := range v.Seq2() {
				s.walk(k, path+" key")
				s.walk(e, fmt.Sprintf("%s[%v]", path, k))
			}
		}
	case reflect.Slice:
		if v.Cap() == 0 || !s.note(v, v.Len(), path) {
			return
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			s.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().String(), "atomic.Pointer[") {
			to := v.Type().Field(0).Type.Elem() // [0]*T
			if p := v.FieldByName("v").UnsafePointer(); p != nil {
				s.walk(reflect.NewAt(to.Elem(), p), path)
			}
			return
		}
		for field, value := range v.Fields() {
			s.walk(value, path+"."+field.Name)
		}
	}
}
