package pages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	inCode   = regexp.MustCompile("`([^`\n]+)`")
	making   = regexp.MustCompile(`^(?:[A-Z]+=\S+ )*make ([a-z][a-z0-9-]*)`)
	going    = regexp.MustCompile(`\bgo (?:run|test|build|vet|generate) [^|;&#>]*`)
	inFolder = regexp.MustCompile(`-C (\S+)`)
	packages = regexp.MustCompile(`(?:^|\s)(\.(?:/[\w.-]+)*/?)(?:\s|$)`)
	running  = regexp.MustCompile(`-run '?([\w^$|]+)'?`)
	command  = regexp.MustCompile(`(?:^|\$ |/cmd/)penstock ([a-z]+)\b`)
)

// Commands on pages work: the target, the package, the test or the subcommand exists.
func TestCommandsShownExist(t *testing.T) {
	t.Chdir(docs)
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	subcommands, err := os.ReadFile("command.md")
	require.NoError(t, err)
	found := make(map[string]int)
	for _, page := range pagesWithCommands(t) {
		for _, line := range code(t, page) {
			for _, m := range making.FindAllStringSubmatch(line, -1) {
				found["make"]++
				assert.Contains(t, "\n"+string(makefile), "\n"+m[1]+":", "%s: %s", page, line)
			}
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				found["penstock"]++
				assert.True(t, regexp.MustCompile("(?m)^\\|.*`"+m[1]+"`.*\\|").Match(subcommands), "%s: %s", page, line)
			}
			for _, call := range going.FindAllString(line, -1) {
				folder := givenIn(page)
				if m := inFolder.FindStringSubmatch(call); m != nil {
					folder = filepath.Join(folder, filepath.FromSlash(m[1]))
				}
				for _, m := range packages.FindAllStringSubmatch(inFolder.ReplaceAllString(call, ""), -1) {
					found["go"]++
					path := filepath.Join(folder, filepath.FromSlash(strings.TrimSuffix(m[1], "...")))
					if !assert.DirExists(t, path, "%s: %s", page, line) {
						continue
					}
					assert.True(t, strings.Contains(line, "GOWORK=off") || inWorkspace(t, path),
						"%s: %s: go.work leaves that module out: GOWORK=off", page, line)
					if run := running.FindStringSubmatch(call); run != nil && run[1] != "^$" {
						found["run"]++
						assert.True(t, hasTest(t, path, regexp.MustCompile(run[1])), "%s: %s: no such test", page, line)
					}
				}
			}
		}
	}
	for _, kind := range []string{"make", "penstock", "go", "run"} {
		assert.Positive(t, found[kind], kind)
	}
}

// inWorkspace reports whether the module of a folder is in go.work.
func inWorkspace(t *testing.T, folder string) bool {
	t.Helper()
	work, err := os.ReadFile("../go.work")
	require.NoError(t, err)
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
	}
	module, err := filepath.Rel("..", folder)
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^(?:use |\t)(?:\./)?` + regexp.QuoteMeta(filepath.ToSlash(module)) + `$`).Match(work)
}

// pagesWithCommands returns the pages about the current tree whose commands run in the root of the
// repository or in givenIn's folder: without the changelog, which also mentions old ones.
func pagesWithCommands(t *testing.T) []string {
	t.Helper()
	found := []string{
		"../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../examples/README.md",
		"../internal/proof/README.md", "../internal/proof/figures/figures.md", "../internal/proof/mutants/known-bugs.md",
	}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		found = append(found, pages...)
	}
	return found
}

// givenIn returns the folder in which the commands of a page run: for an adapter's page, the folder
// of its module.
func givenIn(page string) string {
	dir, name := filepath.Split(strings.TrimSuffix(page, ".md"))
	switch {
	case filepath.Clean(dir) != "adapters", name == "nethttp": // not a separate module
		return ".."
	case name == "sqldriver": // its example is one
		return filepath.Join("..", "adapters", name, "postgres")
	}
	return filepath.Join("..", "adapters", name)
}

// code returns each line of a page's code, and texts between backquotes.
func code(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, b := range blocks(t, page) {
		for line := range strings.Lines(b.text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(fence.ReplaceAllString(string(text), "")) {
		if indented, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimSpace(indented))
		}
		for _, m := range inCode.FindAllStringSubmatch(line, -1) {
			lines = append(lines, m[1])
		}
	}
	return lines
}

// hasTest reports whether a folder, or one below, has a test, an example or a fuzz target of such a
// name.
func hasTest(t *testing.T, folder string, name *regexp.Regexp) (found bool) {
	t.Helper()
	functions := regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range functions.FindAllStringSubmatch(string(text), -1) {
			found = found || name.MatchString(m[1])
		}
		return err
	}))
	return found
}
