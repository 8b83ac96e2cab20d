package series

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// hostile returns names that might share a label, or collide with Other.
func hostile() []string {
	long := strings.Repeat("a", 200)
	names := []string{
		Other, Other + "~", "__other__ ", "", "a", "\xff", "\xfe", "\xff\xff", "\uFFFD", "a\xffb", "a\uFFFDb",
		long, long + "b", strings.Repeat("a", maxLabel), strings.Repeat("a", maxLabel+1), strings.Repeat("ü", 64), strings.Repeat("ü", 65),
	}
	for range 3 { // the label of each name, and the label of that
		for _, name := range names {
			names = append(names, Label(name))
		}
	}
	return names
}

func TestLabelsDiffer(t *testing.T) {
	owner := make(map[string]string)
	for _, name := range hostile() {
		label := Label(name)
		if other, ok := owner[label]; ok {
			assert.Equal(t, other, name, "both have the label %q", label)
		}
		owner[label] = name
		assert.NotEqual(t, Other, label)
		assert.True(t, utf8.ValidString(label), "%q", label)
		assert.LessOrEqual(t, len(label), maxLabel)
	}
	assert.Equal(t, "GET /orders/{id}", Label("GET /orders/{id}"), "as it is")
}

func FuzzLabelsDiffer(f *testing.F) {
	names := hostile()
	for i, name := range names[:20] {
		f.Add(name, names[(i+7)%len(names)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, b := range []string{b, Label(a), Label(b)} {
			if a != b {
				assert.NotEqual(t, Label(a), Label(b), "%q and %q", a, b)
			}
		}
		assert.NotEqual(t, Other, Label(a))
		assert.True(t, utf8.ValidString(Label(a)))
		assert.LessOrEqual(t, len(Label(a)), maxLabel)
	})
}
