package argument_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/argument"
)

type (
	aTypeWhoseNameIsLongerThanWhatAValueKeepsOfTheNameOfAType  struct{ ID int }
	aTypeWhoseNameIsLongerThanWhatAValueKeepsOfTheNameOfATypeB struct{ ID int }
)

// Types are distinguished by identity, not by their printed form, at every depth. known bug 120
func TestValuesOfTypesThatArePrintedAlike(t *testing.T) {
	one, shared := func() (values []any, first any) {
		type key struct{ ID int }
		type list []int
		type outer struct{ first key }
		x := &outer{key{7}}
		return []any{
			key{7}, [1]key{{7}}, []key{{7}}, pair{key{7}, nil}, pair{[]any{key{7}}, 1}, list{7},
			struct{ K any }{key{7}}, pair{&x.first, nil},
		}, x
	}()
	other, _ := func() (values []any, first any) {
		type key struct{ ID int }
		type list []int
		k := (*key)(reflect.ValueOf(shared).UnsafePointer())
		return []any{
			key{7}, [1]key{{7}}, []key{{7}}, pair{key{7}, nil}, pair{[]any{key{7}}, 1}, list{7},
			struct{ K any }{key{7}}, pair{k, nil},
		}, nil
	}()
	for i := range one {
		assert.Equal(t, reflect.TypeOf(one[i]).String(), reflect.TypeOf(other[i]).String(), "the test has no point")
		assert.Equal(t, argument.Of(one[i]), argument.Of(one[i]))
		assert.NotEqual(t, argument.Of(one[i]), argument.Of(other[i]), "%T", one[i])
	}
	assert.NotEqual(t,
		argument.Of(aTypeWhoseNameIsLongerThanWhatAValueKeepsOfTheNameOfAType{7}),
		argument.Of(aTypeWhoseNameIsLongerThanWhatAValueKeepsOfTheNameOfATypeB{7}))
}

// Pointers of different types to one address are different values.
func TestPointersOfTypesThatArePrintedAlike(t *testing.T) {
	x := &pair{}
	type pair struct{ A any }
	same := (*pair)(reflect.ValueOf(x).UnsafePointer())
	assert.Equal(t, fmt.Sprintf("%T", x), fmt.Sprintf("%T", same), "the test has no point")
	assert.Equal(t, argument.Of(x), argument.Of(x))
	assert.NotEqual(t, argument.Of(x), argument.Of(same))
	assert.Equal(t, argument.Of(make(map[int]int)).String()[:12], "map[int]int#")
}
