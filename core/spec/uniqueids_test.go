package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type plainRule struct {
	ID       string
	resource string
	value    int
	asked    *int // counts the calls of Info
}

func (r plainRule) Info() spec.Info {
	if r.asked != nil {
		*r.asked++
	}
	return spec.Info{ID: r.ID, Resource: r.resource}
}

func (r plainRule) Like() string { return r.resource }

func plainIDs(rules []plainRule) string {
	var all []string
	for _, r := range rules {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

func TestUniqueIDs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		declared []plainRule
		want     string
		err      string
	}{
		{name: "none"},
		{name: "declared", declared: []plainRule{{ID: "a"}, {ID: "b"}}, want: "a b"},
		{name: "made", declared: []plainRule{{resource: "x"}, {resource: "y"}}, want: "made:x made:y"},
		{name: "made from the same fields", declared: []plainRule{{resource: "x", value: 1}, {resource: "x", value: 2}, {resource: "x", value: 3}},
			want: "made:x made:x#2 made:x#3"},
		{name: "another rule has taken it", declared: []plainRule{{resource: "x", value: 1}, {resource: "x", value: 2}, {ID: "made:x#2"}, {ID: "made:x"}},
			want: "made:x#3 made:x#4 made:x#2 made:x"},
		{name: "declared twice", declared: []plainRule{{ID: "a", value: 1}, {ID: "b"}, {ID: "a", value: 2}},
			err: `rules 0 and 2 have the same id "a": give each its own`},
		{name: "declared twice, after a rule with the same made ID", declared: []plainRule{{resource: "x"}, {ID: "made:x", value: 1}, {ID: "made:x", value: 2}},
			err: `rules 1 and 2 have the same id "made:x": give each its own`},
		{name: "the same twice", declared: []plainRule{{resource: "x", value: 1}, {resource: "x", value: 2}, {resource: "x", value: 2}},
			err: "rules 1 and 2 are the same: remove one"},
		{name: "the same, but one has an ID", declared: []plainRule{{resource: "x"}, {ID: "a", resource: "x"}}, want: "made:x a"},
		{name: "the same, one named like the other", declared: []plainRule{{ID: "made:x", resource: "x"}, {resource: "x"}},
			err: "rules 0 and 1 are the same: remove one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := spec.UniqueIDs(tt.declared, normalized(tt.declared))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, plainIDs(got))
		})
	}
}

func normalized(declared []plainRule) []plainRule {
	all := make([]plainRule, len(declared))
	for i, r := range declared {
		if r.ID == "" {
			r.ID = "made:" + r.resource
		}
		all[i] = r
	}
	return all
}

// A file may have 10,000 rules, all for one resource: the work must not grow with
// the square of their number.
func TestUniqueIDsOfManyRulesForOneResource(t *testing.T) {
	const n = 10_000
	asked := 0
	declared := make([]plainRule, n)
	for i := range declared {
		declared[i] = plainRule{resource: "x", value: i, asked: &asked}
	}
	got, err := spec.UniqueIDs(declared, normalized(declared))
	require.NoError(t, err)
	assert.Equal(t, "made:x#10000", got[n-1].ID)
	assert.LessOrEqual(t, asked, 5*n)

	declared[n-1].value = 0
	_, err = spec.UniqueIDs(declared, normalized(declared))
	assert.EqualError(t, err, fmt.Sprintf("rules 0 and %d are the same: remove one", n-1))
}
