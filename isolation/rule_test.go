package isolation_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
)

// A line for each field that can be wrong, and each way it can be.
func TestRuleRefuses(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		rule isolation.Rule
		want string
	}{
		{isolation.Rule{}, "resource: is required: name the resource that the rule limits"},
		{isolation.Rule{Resource: "a(b", Regex: true}, `resource: is no regular expression: missing closing ): "a(b"`},
		{isolation.Rule{Threshold: -1}, "threshold: is -1: use a whole number from 0 to 1000000000"},
		{isolation.Rule{Threshold: 1_000_000_001}, "threshold: is 1000000001: use a whole number from 0 to 1000000000"},
		{isolation.Rule{Threshold: math.MinInt}, "threshold: is "},
		{isolation.Rule{Threshold: math.MaxInt}, "threshold: is "},
		{isolation.Rule{Threshold: 1, MaxQueue: -1, MaxWait: 1}, "maxQueue: is -1: use a whole number from 0 to 1000000"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1_000_001, MaxWait: 1}, "maxQueue: is 1000001: use a whole number from 0 to 1000000"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1, MaxWait: -1}, "maxWait: is -1ns: use a duration from 0s to 24h0m0s"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1, MaxWait: day + 1}, "maxWait: is 24h0m0.000000001s: use a duration from 0s to 24h0m0s"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1}, "maxWait: is required by maxQueue: say how long a call may wait in line"},
		{isolation.Rule{Threshold: 1, MaxWait: 1}, "maxQueue: is required by maxWait: say how many calls may wait in line"},
		{isolation.Rule{MaxQueue: 1, MaxWait: 1}, "maxQueue: does not go with threshold 0, under which nobody's turn ever comes: leave out maxQueue and maxWait"},
		{isolation.Rule{Mode: 3}, "mode: 3 is unknown: use core.Enforce, core.Shadow or core.Off"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if tt.rule.Resource == "" && !strings.HasPrefix(tt.want, "resource: is req") {
				tt.rule.Resource = "orders"
			}
			_, err := tt.rule.Normalized()
			var field *core.FieldError
			require.ErrorAs(t, err, &field)
			assert.True(t, strings.HasPrefix(err.Error(), tt.want), "%v", err)

			// Where it stands in the list is said, and the rules stay.
			g := newGuard(t, permits(0))
			err = g.Update(func(b *core.RulesetBuilder) error {
				return isolation.Compile(b, []isolation.Rule{permits(5), tt.rule})
			})
			require.ErrorContains(t, err, "isolation[1]."+tt.want)
			g.refused()
		})
	}
}

// The ends of every range are inside.
func TestRuleAccepts(t *testing.T) {
	for _, r := range []isolation.Rule{
		{Threshold: 1_000_000_000},
		{Threshold: 1, MaxQueue: 1, MaxWait: 1},
		{Threshold: 1, MaxQueue: 1_000_000, MaxWait: 24 * time.Hour},
		{Resource: ".*", Regex: true, Threshold: 1},
	} {
		if r.Resource == "" {
			r.Resource = "orders"
		}
		g := newGuard(t, r)
		g.enter().Exit()
		assert.Zero(t, g.Failures())
	}
}

// Two rules that differ in any field differ. museum 71
func TestRuleEquality(t *testing.T) {
	rule := isolation.Rule{}
	fields := reflect.TypeFor[isolation.Rule]()
	for i := range fields.NumField() {
		other := rule
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Uint8:
			f.SetUint(1)
		default:
			t.Fatalf("a field of kind %v: say how it is changed", f.Kind())
		}
		assert.False(t, rule.Equal(other), fields.Field(i).Name)
		assert.True(t, other.Equal(other))
	}
}

func TestRuleIDs(t *testing.T) {
	rules, err := isolation.Normalize([]isolation.Rule{
		{Resource: "orders", Threshold: 5},
		{Resource: "orders", Threshold: 7},
		{ID: "mine", Resource: "orders", Threshold: 5},
	})
	require.NoError(t, err)
	var ids []string
	for _, r := range rules {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, []string{"isolation:orders", "isolation:orders#2", "mine"}, ids)
	_, err = isolation.Normalize([]isolation.Rule{{Resource: "orders"}, {Resource: "orders"}})
	require.EqualError(t, err, "isolation: rules 0 and 1 are the same: remove one")
	none, err := isolation.Normalize([]isolation.Rule{})
	require.NoError(t, err)
	assert.Nil(t, none)
}

// What a rule has refused goes on counting when the rule changes, and its refusal
// names it.
func TestRefusalsGoOnCounting(t *testing.T) {
	g := newGuard(t, permits(0))
	g.refused()
	g.load(isolation.Rule{ID: "permits", Resource: "orders", Threshold: 1})
	e := g.enter()
	_, err := g.Enter(t.Context(), "orders", nil)
	require.EqualError(t, err, `penstock: isolation rule "permits" blocked "orders"`)
	e.Exit()
	f := g.figures("permits")
	assert.EqualValues(t, 2, f.Refused)
	assert.Equal(t, core.KindIsolation, f.Kind)
	assert.Equal(t, "orders", f.Resource)
}
