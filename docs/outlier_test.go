package docs_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/outlier"
)

func TestEveryOutlierFieldIsDescribed(t *testing.T) {
	text, err := os.ReadFile("rules.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Outlier ejection\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for field := range reflect.TypeFor[outlier.Rule]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		assert.Contains(t, section, "`"+key+"`")
	}
}
