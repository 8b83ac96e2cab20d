package main

import (
	"fmt"
	"math"
	"reflect"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
)

// values gives a hotspot rule values of every kind, among them those that are made to be
// taken for others. Each that differs from the others must get exactly its own limit, and
// those that are equal one together; empty text has none where the rule ignores it.
func values(r *round) error {
	g, _ := r.guard(api.Config{})
	limit := 1 + r.IntN(4)
	rule := hotspot.Rule{Resource: "orders", Param: "user", Threshold: float64(limit), Interval: pick(r, 100*ms, hotspot.MaxInterval)}
	switch r.IntN(3) {
	case 0:
		rule.Metric, rule.Interval = hotspot.Concurrency, 0
	case 1:
		rule.Behavior, rule.Burst = hotspot.TokenBucket, limit-1
	}
	rule.IgnoreEmpty = r.one(2)
	if err := g.LoadRules(rules.Set{Hotspot: []hotspot.Rule{rule}}); err != nil {
		return err
	}
	type class struct {
		values []any
		passed int
	}
	var classes []*class
	var held []core.Entry
	defer func() {
		for _, e := range held {
			e.Exit()
		}
	}()
	for range 20 + r.IntN(40) {
		v := hostileValue(r)
		var of *class
		for _, c := range classes {
			if worthTheSame(c.values[0], v) {
				of = c
			}
		}
		if of == nil {
			of = new(class)
			classes = append(classes, of)
		}
		of.values = append(of.values, v)
		r.offered.Add(1)
		r.checked.Add(1)
		e, err := g.Entry(r.ctx, "orders", core.Param[any]("user", v))
		held = append(held, e)
		if err == nil {
			of.passed++
		}
		ignored := rule.IgnoreEmpty && text(reflect.ValueOf(v)) && textOf(reflect.ValueOf(v)) == ""
		if (err == nil) != (ignored || len(of.values) <= limit) {
			return fmt.Errorf("a limit of %d for each value (ignoreEmpty %v): call %d with %s got %s; the same as %s",
				limit, rule.IgnoreEmpty, len(of.values), describe(v), fate(err), describe(of.values[0]))
		}
	}
	return nil
}

// The types below have the names of others.
type (
	key   string
	code  int
	pair  struct{ a, b any }
	named struct{ key string }
)

func one() any { type key struct{ n int }; return key{1} }
func two() any { type key struct{ n int }; return key{1} }
func other() any {
	type key struct {
		n int
		_ struct{}
	}
	return key{n: 1}
}

// hostileValue returns one of few values, so that some are equal.
func hostileValue(r *round) any {
	n := r.IntN(3)
	switch r.IntN(24) {
	case 0:
		return n
	case 1:
		return pick[any](r, int8(n), int16(n), int32(n), int64(n), uint8(n), uint64(n), uintptr(n), code(n))
	case 2:
		return pick[any](r, float64(n), float32(n), math.Copysign(0, -1), math.NaN(), -math.NaN(), math.Inf(1), 1e300)
	case 3:
		return pick[any](r, "1", "", "1\x00", key("1"), "true", "<nil>", "NaN", "{1}")
	case 4:
		return pick[any](r, []byte("1"), []byte{0xff}, "\xff", []byte{})
	case 5:
		return pick[any](r, true, false)
	case 6:
		return pick[any](r, uint64(math.MaxUint64), int64(-1), uint64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64))
	case 7:
		return pick[any](r, complex(1, 0), complex(float64(n), 1), complex64(complex(float64(n), 1)))
	case 8, 9:
		return one()
	case 10, 11:
		return two()
	case 12:
		return other()
	case 13:
		return pick[any](r, pair{one(), n}, pair{two(), n}, pair{n, one()}, pair{n, nil}, pair{"1", 1}, pair{1, "1"})
	case 14:
		return pick[any](r, [2]any{one(), 0}, [2]any{two(), 0}, [2]int{n, 0}, [1]int{n}, [2]int8{int8(n), 0})
	case 15:
		return pick[any](r, named{"1"}, named{"2"}, struct{ key string }{"1"}, struct{ k string }{"1"})
	case 16:
		s := "1"
		return pick[any](r, &s, &n)
	case 17:
		return pick[any](r, pair{"a", "bc"}, pair{"ab", "c"}, pair{"a\x00b", "c"}, pair{"a", "\x00bc"})
	case 18:
		long := string(make([]byte, argument.MaxText))
		return pick[any](r, long, long+"a", long+"b", []byte(long+"a"))
	case 19:
		return pick[any](r, reflect.TypeFor[key](), reflect.TypeOf(one()), reflect.TypeOf(two()))
	case 20:
		return pick[any](r, reflect.Zero(reflect.TypeOf(one())).Interface(), reflect.Zero(reflect.TypeOf(two())).Interface())
	case 21:
		return pick[any](r, wrapped[key]{"1"}, wrapped[string]{"1"}, generic[int](), generic[string]())
	case 22:
		return pick[any](r, standing...)
	default:
		return code(n)
	}
}

type wrapped[T any] struct{ v T }

func generic[T any]() any { type key struct{ v [0]T }; return key{v: [0]T{}} }

// standing are values each of which is one of its own.
var standing = []any{new(pair), new(pair), make(map[int]int), make(map[int]int), make(chan int), make(chan int), new(named)}

// worthTheSame is what docs/rules/hotspot.md says of equal values, in its own words.
func worthTheSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for _, v := range []*reflect.Value{&x, &y} {
		if v.Kind() == reflect.Pointer && scalar(v.Elem()) {
			*v = v.Elem()
		}
	}
	switch {
	case integer(x) && integer(y):
		return sign(x) == sign(y) && magnitude(x) == magnitude(y)
	case x.CanFloat() && y.CanFloat():
		return x.Float() == y.Float() || math.IsNaN(x.Float()) && math.IsNaN(y.Float())
	case text(x) && text(y):
		return textOf(x) == textOf(y)
	case x.Type() != y.Type():
		return false
	case x.Kind() == reflect.Bool:
		return x.Bool() == y.Bool()
	case x.Kind() == reflect.Interface:
		return x.IsNil() && y.IsNil() || !x.IsNil() && !y.IsNil() && worthTheSame(a, b)
	}
	return x.Comparable() && x.Equal(y) || !x.Comparable() && x.Pointer() == y.Pointer()
}

func integer(v reflect.Value) bool { return v.CanInt() || v.CanUint() }

func scalar(v reflect.Value) bool {
	return integer(v) || v.CanFloat() || v.Kind() == reflect.String || v.Kind() == reflect.Bool
}

func sign(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }

func magnitude(v reflect.Value) uint64 {
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
}

func text(v reflect.Value) bool {
	return v.Kind() == reflect.String || v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

func textOf(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	return string(v.Bytes())
}

func describe(v any) string { return fmt.Sprintf("%#v (%T of %s)", v, v, reflect.TypeOf(v).PkgPath()) }
