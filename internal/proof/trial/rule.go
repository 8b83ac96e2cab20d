package trial

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// EveryFieldCounts checks that changing any single field makes a rule unequal. others are values
// for fields whose types it can't change by itself.
func EveryFieldCounts[R spec.Rule](t *testing.T, rule R, others ...any) {
	t.Helper()
	fields := reflect.TypeFor[R]()
	for i := range fields.NumField() {
		other := rule
		change(t, reflect.ValueOf(&other).Elem().Field(i), others)
		if spec.Equal(rule, other) || spec.Equal(other, rule) {
			t.Errorf("%s: %+v and %+v are equal", fields.Field(i).Name, rule, other)
		}
		if !spec.Equal(rule, rule) || !spec.Equal(other, other) {
			t.Errorf("%s: %+v or %+v is not equal to itself", fields.Field(i).Name, rule, other)
		}
	}
}

func change(t *testing.T, f reflect.Value, others []any) {
	t.Helper()
	for _, other := range others {
		if v := reflect.ValueOf(other); v.Type() == f.Type() {
			f.Set(v)
			return
		}
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Uint8:
		f.SetUint(f.Uint() + 1)
	case reflect.Float64:
		f.SetFloat(math.Nextafter(f.Float(), 10))
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), f.Len()+1, f.Len()+1))
	default:
		t.Fatalf("a field has type %v: pass another value for it", f.Type())
	}
}

// IDs checks that rules get different IDs, a configured ID is kept, and two equal rules are
// refused. one and like are for "orders" and differ only in fields that aren't part of the identity.
func IDs[R spec.Rule](t *testing.T, kind core.Kind, normalized func(R) (R, error), one, like R) {
	t.Helper()
	rules, err := spec.Normalize(kind, []R{one, like, spec.WithID(one, "mine")}, normalized)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range rules {
		ids = append(ids, r.Info().ID)
	}
	if want := []string{kind.String() + ":orders", kind.String() + ":orders#2", "mine"}; !slices.Equal(ids, want) {
		t.Errorf("the IDs are %q, want %q", ids, want)
	}
	want := kind.String() + ": rules 0 and 1 are the same: remove one"
	if _, err := spec.Normalize(kind, []R{one, one}, normalized); err == nil || err.Error() != want {
		t.Errorf("two that are the same: %v, want %q", err, want)
	}
	if none, err := spec.Normalize(kind, []R{}, normalized); err != nil || none != nil {
		t.Errorf("no rules give %v, %v", none, err)
	}
}

// OnlyRead returns a rule without the fields that it doesn't read. Normalization rejects fields that
// have no effect under the rule's metric or behavior, and drawing fields one by one produces such
// rules.
func OnlyRead[R any](rule R, normalized func(R) (R, error)) R {
	for {
		_, err := normalized(rule)
		bad, ok := errors.AsType[*spec.FieldError](err)
		if !ok || !strings.HasPrefix(bad.Problem, "has no meaning for ") {
			return rule
		}
		Field(reflect.ValueOf(&rule).Elem(), bad.Field).SetZero()
	}
}

// Field is the field of a rule that a rule file calls key.
func Field(rule reflect.Value, key string) reflect.Value {
	for i := range rule.NumField() {
		if name, _, _ := strings.Cut(rule.Type().Field(i).Tag.Get("yaml"), ","); name == key {
			return rule.Field(i)
		}
	}
	panic("no field is called " + key)
}
