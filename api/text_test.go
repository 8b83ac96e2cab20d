package api_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
)

// A rule with text that is not UTF-8, in any field, is refused, and the loaded rules stay: no file
// could contain it, and one such rule would prevent all of them from being shown. The fields are
// found by reflection, so that a new one is part of this test.
// known bug 117
func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	g := newGuard(t, api.Config{})
	require.NoError(t, g.LoadRules(holding()))
	before := g.Rules()
	all := holding()
	fields := textsOf(reflect.ValueOf(&all).Elem())
	require.GreaterOrEqual(t, len(fields), 20)
	for i, field := range fields {
		set := holding()
		textsOf(reflect.ValueOf(&set).Elem())[i].spoil()
		var bad *spec.FieldError
		if assert.ErrorAs(t, g.LoadRules(set), &bad, field.path) {
			assert.Equal(t, field.path[1], bad.Field)
			assert.Equal(t, `"orders\xff" is not UTF-8 text`, bad.Problem)
		}
		assert.Equal(t, before, g.Rules())
	}
	for _, format := range []string{"json", "yaml"} {
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/rules?format="+format, nil))
		assert.Equal(t, http.StatusOK, w.Code)
	}
}

// text is a text in a set of rules.
type text struct {
	path  []string // keys: the family's, the rule's, and so on
	spoil func()   // makes it invalid UTF-8
}

func textsOf(v reflect.Value, path ...string) (found []text) {
	const spoilt = "orders\xff"
	switch {
	case v.Kind() == reflect.String:
		found = append(found, text{path, func() { v.SetString(spoilt) }})
	case v.Type() == reflect.TypeFor[argument.Value]():
		found = append(found, text{path, func() { v.Set(reflect.ValueOf(argument.Of(spoilt))) }})
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			found = append(found, textsOf(v.Index(i), path...)...)
		}
	case v.Kind() == reflect.Struct:
		for field, value := range v.Fields() {
			if key, _, ok := strings.Cut(field.Tag.Get("yaml"), ","); ok || key != "" {
				found = append(found, textsOf(value, append(path[:len(path):len(path)], key)...)...)
			}
		}
	}
	return found
}
