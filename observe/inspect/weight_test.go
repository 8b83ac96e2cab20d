package inspect

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Memory of details counts as held by readers, regardless of their type.
func TestWeight(t *testing.T) {
	type item struct {
		Name string
		When time.Time
		n    int64
	}
	size := func(v any) int { return int(reflect.TypeOf(v).Size()) }
	text, pair := size(""), size("")+4
	for _, tt := range []struct {
		v    any
		want int
	}{
		{int64(7), 8},
		{"four", text + 4},
		{item{Name: "abc", When: time.Now(), n: 1}, size(item{}) + 3},
		{[]string{"a", "bc"}, size([]string{}) + 2*text + 3},
		{make([]item, 1, 5), size([]item{}) + 5*size(item{})},
		{map[string]int32{"open": 1, "closed": 2}, size(map[string]int32{}) + 2*pair + 10},
		{struct{ In any }{"four"}, size(struct{ In any }{}) + text + 4},
		{&item{Name: "abc"}, size(&item{})},
	} {
		require.Equal(t, tt.want, weight(reflect.ValueOf(&tt.v).Elem()), "%#v", tt.v)
	}
	var none any
	require.Zero(t, weight(reflect.ValueOf(&none).Elem()))
}
