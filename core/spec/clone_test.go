package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
)

func TestCloneRules(t *testing.T) {
	type inner struct {
		Names []string
		Value argument.Value
	}
	type rule struct {
		N     int
		Lists [][]inner
		Inner inner
		own   *int
	}
	make := func() []rule {
		return []rule{{1, [][]inner{{{[]string{"a"}, argument.Of(1)}}, nil}, inner{[]string{}, argument.Of("x")}, new(int)}, {}}
	}
	given := make()
	copied := spec.Clone(given)
	assert.Equal(t, make(), copied, "including nil and empty slices")
	copied[0].N = 2
	copied[0].Lists[0][0].Names[0] = "b"
	copied[0].Lists[1] = []inner{{}}
	copied[1].N = 3
	assert.Equal(t, make(), given)

	assert.Nil(t, spec.Clone[rule](nil))
	numbers := []struct{ M map[string]int }{{map[string]int{"a": 1}}, {}}
	spec.Clone(numbers)[0].M["a"] = 2
	assert.Equal(t, 1, numbers[0].M["a"])
	assert.Panics(t, func() { spec.Clone([]struct{ M map[string][]int }{{}}) })
	assert.Panics(t, func() { spec.Clone([]struct{ P *rule }{{}}) })
}
