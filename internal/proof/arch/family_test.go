package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A family of rules touches at most 15 lines outside its folder, including those of this package.
// Breakers and outlier rules have functions in api for themselves. Package adapters/refusal has a
// default for families that it doesn't name, and families that Sentinel doesn't have are missing
// from the lists for its files and its dashboard. Package rules/lint checks single families; its
// checks of all families have a line for each.
func TestAFamilyRegistersOnce(t *testing.T) {
	const most = 15
	m := thisModule(t)
	for name := range strings.FieldsSeq(families) {
		if name == "breaker" || name == "outlier" {
			continue
		}
		lines := map[string]bool{"internal/proof/arch/arch_test.go: families": true, "internal/proof/arch/arch_test.go: layers": true}
		kind := "Kind" + strings.ToUpper(name[:1]) + name[1:]
		for _, f := range m.files {
			if f.test || f.dir == name || f.in("adapters") || f.in("gateway") || f.in("examples") || f.in("internal") || f.dir == "rules/lint" || f.dir == "observe/transport/sentinel" || f.in("proof") || f.in("bench") {
				continue
			}
			imported := false
			m.imports(f, func(_ *ast.ImportSpec, path string) { imported = imported || path == m.module+"/"+name })
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				touches := false
				switch n := n.(type) {
				case *ast.Ident:
					touches = n.Name == kind || n.Name == name && imported
				case *ast.BasicLit:
					touches = n.Value == `"`+name+`"` || n.Value == `"`+m.module+`/`+name+`"`
				}
				if !touches {
					return true
				}
				if at := m.problem(n, ""); !strings.HasPrefix(at, "rules/foreignlists.go:") {
					lines[at] = true
				}
				return true
			})
		}
		assert.LessOrEqual(t, len(lines), most, "%s: %v", name, lines)
		assert.Greater(t, len(lines), 5, "%s: the test counted too few lines", name)
	}
}

// CONTRIBUTING shows the lines of a family exactly, and all of them. "..." stands for anything, and
// a text after "//" for any reason.
func TestFamilyInContributing(t *testing.T) {
	const family = "isolation"
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, part, ok := strings.Cut(string(text), "## Add a family of rules")
	require.True(t, ok)
	_, part, _ = strings.Cut(part, "```\n")
	part, _, _ = strings.Cut(part, "```")
	shown := strings.Split(strings.TrimSpace(part), "\n")
	require.Greater(t, len(shown), 8)
	matched := make(map[string]bool) // file: line
	for _, line := range shown {
		name, want, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		want, _, _ = strings.Cut(want, " // ")
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`, `.*`)
		found := regexp.MustCompile(`(?m)^[ \t]*`+pattern+`[ \t]*(//.*)?$`).FindAllString(string(code), -1)
		assert.NotEmpty(t, found, line)
		for _, l := range found {
			matched[name+": "+strings.TrimSpace(l)] = true
		}
	}
	names := regexp.MustCompile(`(?i)\b(kind)?` + family + `\b`)
	for _, name := range []string{"core/block.go", "api/names.go", "rules/set.go", "slots/default.go", "internal/proof/arch/arch_test.go"} {
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		for l := range strings.Lines(string(code)) {
			l = strings.TrimSpace(l)
			code, _, _ := strings.Cut(l, "//")
			if others := name == "internal/proof/arch/arch_test.go" && !strings.Contains(l, `"`+family+`"`) && !strings.Contains(l, "families ="); others {
				continue // the layers that see it
			}
			if names.MatchString(code) {
				assert.True(t, matched[name+": "+l], "%s: missing in CONTRIBUTING: %s", name, l)
			}
		}
	}
}
