package main

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// copies writes over everything that can be reached from a set that was loaded, and from
// what Rules returned, and looks whether the guard says anything else then, or lets
// anybody else in. It walks all fields, whatever they will be.
func copies(r *round) error {
	if err := copiesOfSets(r); err != nil {
		return err
	}
	return copiesInForce(r)
}

func copiesOfSets(r *round) error {
	g, _ := r.guard(api.Config{})
	set := drawSet(r, 4)
	if err := g.LoadRules(set); err != nil {
		return fmt.Errorf("a set that should be right is refused: %w", err)
	}
	r.offered.Add(int64(set.Len()))
	said, out := say(g.Rules()), g.Rules()
	for what, other := range map[string]rules.Set{"what was handed in": set, "another result of Rules": g.Rules()} {
		n, at := shared(other, out)
		r.checked.Add(n)
		if at != "" {
			return fmt.Errorf("%s and what Rules returns share memory: %s", what, at)
		}
	}
	for what, other := range map[string]*rules.Set{"what was handed in": &set, "what Rules returned": &out} {
		scribble(reflect.ValueOf(other))
		if now := say(g.Rules()); now != said {
			return fmt.Errorf("writing over %s changed the rules in force to\n%s\nfrom\n%s", what, now, said)
		}
	}
	return nil
}

// copiesInForce lets in whom the rules name, before and after somebody writes over them,
// also if a load fails after that.
func copiesInForce(r *round) error {
	g, _ := r.guard(api.Config{})
	set := rules.Set{
		Authority: []authority.Rule{{Resource: "vault", Origins: []string{"ann"}}},
		Breaker:   []breaker.Rule{{ID: "rest", Resource: spec.AnyResource, Threshold: 1, MinCalls: 1, Exclude: []string{"vault"}}},
	}
	if err := g.LoadRules(set); err != nil {
		return err
	}
	out := g.Rules()
	scribble(reflect.ValueOf(pick(r, &set, &out)))
	if r.one(2) {
		if err := g.LoadRules(rules.Set{Authority: []authority.Rule{{Resource: "x"}}}); err == nil {
			return fmt.Errorf("a list of nobody was accepted")
		}
	}
	for i := range 4 {
		for _, origin := range []string{"ann", "scribbled"} {
			r.offered.Add(1)
			r.checked.Add(1)
			e, err := g.Entry(from(r.ctx, "", origin), "vault")
			e.Fail(errBroken)
			e.Exit()
			if (err == nil) != (origin == "ann") {
				return fmt.Errorf("only ann may come in, and \"vault\" has no breaker; call %d, of %s, after the lists were written over: %s", i+1, origin, fate(err))
			}
		}
	}
	return nil
}

// errBroken is how guarded code fails.
var errBroken = errors.New("broken")

// say writes down all that a set holds.
func say(set rules.Set) string {
	text, err := set.YAML()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// scribble writes over everything that v points to.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			scribble(field)
		}
	case reflect.Map:
		v.Clear()
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribbled")
		}
	case reflect.Int, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 1)
		}
	case reflect.Float64:
		if v.CanSet() {
			v.SetFloat(v.Float() + 1)
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(!v.Bool())
		}
	}
}

// shared names memory that can be written to by way of both values, "" if there is none,
// and says at how many places it looked.
func shared(a, b any) (looked int64, both string) {
	owned := make(map[uintptr]string)
	reach(reflect.ValueOf(a), "", func(p uintptr, path string) { owned[p] = path })
	reach(reflect.ValueOf(b), "", func(p uintptr, path string) {
		looked++
		if other, ok := owned[p]; ok && both == "" {
			both = other + " and " + path
		}
	})
	return looked, both
}

// reach calls f with the address of every array, map and variable that v leads to.
func reach(v reflect.Value, path string, f func(p uintptr, path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f(v.Pointer(), path)
			reach(v.Elem(), path, f)
		}
	case reflect.Interface:
		if !v.IsNil() {
			reach(v.Elem(), path, f)
		}
	case reflect.Slice:
		if v.Cap() > 0 {
			f(v.Pointer(), path)
		}
		for i := range v.Len() {
			reach(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.Array:
		for i := range v.Len() {
			reach(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			reach(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Map:
		f(v.Pointer(), path)
	}
}
