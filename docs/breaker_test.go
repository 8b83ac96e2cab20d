package docs_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
)

func TestEveryBreakerFieldIsDescribed(t *testing.T) {
	text, err := os.ReadFile("rules.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Breakers\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for field := range reflect.TypeFor[breaker.Rule]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		assert.Contains(t, section, "\n| `"+key+"` |", "a row of the table of fields")
	}
}
