package rules_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// The file in the package comment is valid: it has every field of a flow rule, and the defaults it
// mentions are the actual ones.
func TestFileOfTheComment(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(source), "//\tflow:\n")
	text, _, _ = strings.Cut(text, "//\n")
	file := "flow:\n" + strings.ReplaceAll(text, "//\t", "")
	parsed := func(file string) (all []flow.Rule) {
		set, err := rules.Parse("rules.yaml", []byte(file))
		require.NoError(t, err, file)
		for _, r := range set.Flow {
			r, err := r.Normalized(3)
			require.NoError(t, err)
			all = append(all, r)
		}
		return all
	}
	want := parsed(file)
	for i, structure := 0, reflect.TypeFor[flow.Rule](); i < structure.NumField(); i++ {
		key, _, _ := strings.Cut(structure.Field(i).Tag.Get("yaml"), ",")
		assert.Regexp(t, `(?m)^ +(- )?`+key+`: `, file)
	}
	lines := strings.SplitAfter(file, "\n")
	defaults := 0
	for i, line := range lines {
		if !strings.Contains(line, "# the default") {
			continue
		}
		defaults++
		without := strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
		assert.Equal(t, want, parsed(without), line)
	}
	assert.Len(t, regexp.MustCompile(`# the default`).FindAllString(file, -1), defaults)
	assert.Greater(t, defaults, 10)
}
