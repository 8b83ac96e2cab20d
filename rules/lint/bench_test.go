package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// The files have the maximum number of rules, all with distinct names or all for one resource.
func BenchmarkCheck(b *testing.B) {
	for name, line := range map[string]string{
		"names":    "  - {id: r%d, resource: r%[1]d, threshold: %[1]d}\n",
		"one name": "  - {id: r%d, resource: r, threshold: %[1]d}\n",
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for _, family := range []string{"flow", "isolation"} {
				text.WriteString(family + ":\n")
				for i := range rules.MaxRules / 2 {
					fmt.Fprintf(&text, line, i)
				}
			}
			p, err := rules.ParseWith("r.yaml", []byte(text.String()), rules.ParseOptions{})
			require.NoError(b, err)
			for b.Loop() {
				lint.Check(p, lint.Options{})
			}
		})
	}
}
