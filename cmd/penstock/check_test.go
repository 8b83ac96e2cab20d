package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules"
)

const tenMistakes = `flow:
  - resource: GET /orders
    treshold: 100               # a misspelt key
  - resource: GET /users
    threshold: 100
    interval: 500               # a duration without its unit
  - resource: GET /search
    threshold: 100
    behavior: warmup            # a name that does not exist
  - resource: GET /stock
    threshold: -1               # a negative limit
  - {id: a, resource: GET /a, threshold: 1}
  - {id: a, resource: GET /b, threshold: 2}   # an id that is there already
  - resource: GET /items/(.*
    match: regex                # an expression that is none
    threshold: 1
isolation: {resource: GET /x, threshold: 1}   # no list
breaker:
  - resource: POST /payments
    strategy: errorRatio
    threshold: 50               # a ratio above 1
  - strategy: errorCount        # no resource
    threshold: 5
brakers: []                     # a family that does not exist
`

// One run reports all ten mistakes in a file, with line and column.
func TestTenMistakes(t *testing.T) {
	file := write(t, "rules.yaml", tenMistakes)
	r := penstock(t, "", "check", "--json", file)
	assert.Equal(t, exitErrors, r.code)
	var got struct {
		Files []struct {
			File, Dialect string
			Rules         int
		}
		Errors, Warnings int
		Found            []struct {
			Severity, File, Field, Problem string
			Line, Column                   int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	assert.Equal(t, 10, got.Errors)
	assert.Zero(t, got.Warnings)
	lines := strings.Split(tenMistakes, "\n")
	var found []string
	for _, f := range got.Found {
		assert.Equal(t, "error", f.Severity)
		assert.Equal(t, file, f.File)
		assert.NotEmpty(t, f.Problem)
		text := lines[f.Line-1][f.Column-1:]
		text, _, _ = strings.Cut(text, " ")
		found = append(found, f.Field+" at "+text)
	}
	assert.Equal(t, []string{
		"flow[0].treshold at treshold:",
		"flow[1].interval at 500",
		"flow[2].behavior at warmup",
		"flow[3].threshold at -1",
		"flow[5].id at a,",
		"flow[6].resource at GET",
		"isolation at {resource:",
		"breaker[0].threshold at 50",
		"breaker[1].resource at strategy:",
		"brakers at brakers:",
	}, found)

	r = penstock(t, "", "check", file)
	assert.Equal(t, exitErrors, r.code)
	assert.Equal(t, 10, strings.Count(r.out, ": error: "))
	assert.Contains(t, r.out, file+":6:15: error: flow[1].interval: must be a duration with its unit, as in 500ms or 500s\n"+
		"  6 |     interval: 500               # a duration without its unit\n"+
		"    |               ^\n")
	assert.True(t, strings.HasSuffix(r.out, file+": 10 errors\n"))

	r = penstock(t, "", "check", "--format", "github", file)
	assert.Equal(t, 10, strings.Count(r.out, "::error file="))
	assert.Contains(t, r.out, "::error file="+file+",line=11,col=16,title=flow[3].threshold::flow[3].threshold: is -1: use a finite number from 0 to 1e+15\n")
}

// One run reports the mistakes in each file, and in all files together.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":        "flow:\n  - {id: orders, resource: GET /orders, threshold: 1}\n  - {id: twice, resource: GET /a, threshold: 1}\n",
		"b.yml":         "flow:\n  - resource: GET /b\n    threshold: 1\n    id: twice\nbreaker:\n  - {id: orders, resource: GET /b, strategy: errorCount, threshold: 5}\n",
		"c.json":        `{"flow": [{"resource": "GET /c"}]}`,
		"d.yaml":        "flow:\n  - resource: [\n",
		"e.json":        `[{"resource": "POST /payments", "grade": 1, "count": 1, "timeWindow": 10}]`,
		".hidden.yaml":  "no: rules",
		"README.md":     "no rules either",
		"sub/deep.yaml": "nor: these",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Chdir(dir)
	r := penstock(t, "", "check", ".")
	assert.Equal(t, exitErrors, r.code)
	assert.Equal(t, `c.json:1:11: error: flow[0].threshold: is required: write 0 if you mean 0
  1 | {"flow": [{"resource": "GET /c"}]}
    |           ^
d.yaml:2:3: error: is not YAML: did not find expected node content
  2 |   - resource: [
    |   ^
e.json:1:54: warning: [0].count: is 1, and Sentinel opens only above it, so never: the rule is read as `+"`mode: off`"+`; write a smaller ratio (never-opens)
  1 | … "POST /payments", "grade": 1, "count": 1, "timeWindow": 10}]
    |                                          ^
b.yml:4:9: error: flow[0].id: the id "twice" is also that of flow[1] in a.yaml:3:5: give each its own, or remove one
  4 |     id: twice
    |         ^
5 files: 3 errors, 1 warning
`, r.out)

	r = penstock(t, "flow: []", "check", "a.yaml", "missing.yaml", "sub/deep.yaml", "-")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.out, "missing.yaml: error: no such file or directory\n")
	assert.Contains(t, r.out, "sub/deep.yaml:1:1: error: nor: unknown family: use authority, ")
	assert.Contains(t, r.out, "4 files: 2 errors\n")

	assert.Contains(t, penstock(t, "", "check", "a.yaml", "a.yaml").err, "a.yaml: named twice")
	require.NoError(t, os.Mkdir("empty", 0o755))
	assert.Contains(t, penstock(t, "", "check", "empty").err, "empty: error: has no rule file")
	assert.Equal(t, result{exitOK, "2 files: ok, 3 rules\n", ""}, penstock(t, "", "check", "a.yaml", write(t, "f.yaml", "flow:\n  - {resource: x, threshold: 1}\n")))
}

// check doesn't reject rules that a cluster shares, but a program without their prerequisites does:
// check names the prerequisites, and this is not a finding.
func TestWhatAProgramNeeds(t *testing.T) {
	const rule = "flow:\n  - {id: a, resource: x, threshold: 5, cluster: {}}\n"
	said := func(args ...string) (out string) {
		r := penstock(t, "", append([]string{"check"}, args...)...)
		require.Equal(t, exitOK, r.code)
		_, out, _ = strings.Cut(r.out, "\n")
		return out
	}
	inProgram := write(t, "program.yaml", rule)
	assert.Equal(t, `It loads in a program that has a store for shared limits in api.Config.Cluster.Store; or add "cluster: {redis: URL}" to the top of the file.
`, said("--strict", inProgram))

	inFile := write(t, "store.yaml", "cluster: {redis: 'rediss://app:$REDIS_PASSWORD@cache:6379/0', members: 2}\n"+rule)
	assert.Equal(t, `It loads in a program that has a store for rediss:// in api.Config.Stores, such as penstockredis.Stores(), and REDIS_PASSWORD in its environment.
`, said("--strict", inFile))
	assert.Contains(t, penstock(t, "", "check", "--json", inFile).out, `"needs": [`)

	off := write(t, "off.yaml", strings.ReplaceAll(rule, "cluster: {}", "cluster: {}, mode: off"))
	assert.Empty(t, said(off))
}

// Warnings are not errors, unless --strict is set.
func TestStrict(t *testing.T) {
	java := write(t, "java.json", `[{"resource": "POST /payments", "grade": 1, "count": 1, "timeWindow": 10}]`)
	assert.Equal(t, exitOK, penstock(t, "", "check", java).code)
	assert.Equal(t, exitFindings, penstock(t, "", "check", "--strict", java).code)
	r := penstock(t, "", "check", "--strict", "--format", "github", java)
	assert.Equal(t, exitFindings, r.code)
	assert.Contains(t, r.out, "::warning file="+java+",line=1,col=54,title=never-opens::[0].count: is 1")
	bad := write(t, "bad.yaml", "flow: 1")
	assert.Equal(t, exitErrors, penstock(t, "", "check", "--strict", java, bad).code, "errors weigh more")
}

// Rules without ids in two files collide if their generated ids do, as in a program that loads
// both.
func TestMadeIDs(t *testing.T) {
	a := write(t, "a.yaml", "flow:\n  - {resource: GET /a, threshold: 1}\n  - {resource: GET /orders, threshold: 1}\n")
	b := write(t, "b.json", `{"flow": [{"resource": "GET /orders", "threshold": 2}]}`)
	r := penstock(t, "", "check", a, b)
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.out, b+`:1:11: error: flow[0]: the id "flow:GET /orders" is also that of flow[1] in `+a+":3:5: give each its own, or remove one\n")
}

// check treats files together like a program that watches them.
func TestAsWatched(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good/a.yaml":  "flow:\n  - {resource: GET /a, threshold: 1}\n",
		"good/b.json":  `{"flow": [{"resource": "GET /b", "threshold": 1}]}`,
		"good/#c.yaml": "no rules",
		"twice/a.yaml": "flow:\n  - {resource: GET /a, threshold: 1}\n",
		"twice/b.yaml": "flow:\n  - {resource: GET /a, threshold: 2}\n",
		"bad/a.yaml":   "flow: 1",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	loads := func(laterWins bool, paths ...string) bool {
		g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		if laterWins {
			g.AllowOverrides()
		}
		err = g.WatchRules(t.Context(), paths...)
		require.NoError(t, g.Close())
		return err == nil
	}
	for _, paths := range [][]string{{"good"}, {"twice"}, {"bad"}, {"good", "bad"}, {"good/a.yaml", "twice/b.yaml"}, {"good/b.json", "twice/b.yaml"}} {
		for i, p := range paths {
			paths[i] = filepath.Join(dir, p)
		}
		assert.Equal(t, loads(false, paths...), penstock(t, "", append([]string{"check"}, paths...)...).code == exitOK, "%q", paths)
		assert.Equal(t, loads(true, paths...), penstock(t, "", append([]string{"check", "--later-wins"}, paths...)...).code == exitOK, "%q", paths)
	}
}

// With --later-wins, every command reports that rules are replaced, and nothing else about them.
func TestLaterWins(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "flow:\n  - {id: orders, resource: GET /orders, threshold: 10}\n  - {id: users, resource: GET /users, threshold: 1}\n",
		"b.yaml": "flow:\n  - {id: orders, resource: GET /orders, threshold: 50}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	assert.Equal(t, exitErrors, penstock(t, "", "check", dir).code)
	assert.Equal(t, exitErrors, penstock(t, "", "try", dir, "GET /orders").code)
	t.Chdir(dir)
	r := penstock(t, "", "check", "--strict", "--later-wins", ".")
	assert.Equal(t, result{exitOK, `b.yaml:2:10: notice: flow[0].id: the rule replaces flow[0] in a.yaml:2:5 (overrides)
  2 |   - {id: orders, resource: GET /orders, threshold: 50}
    |          ^
2 files: ok, 2 rules, 1 notice
`, ""}, r)
	assert.Contains(t, penstock(t, "", "try", "--later-wins", ".", "GET /orders", "--rate", "100/s", "--for", "1s").out, "\n50 of 100 calls passed")
	assert.Contains(t, penstock(t, "", "explain", "--later-wins", ".", "GET /orders").out, "units in 1s: 0 of 50")
	assert.Contains(t, penstock(t, "", "explain", "a.yaml", "b.yaml", "--later-wins", "GET /orders").out, "0 of 50")
	assert.Contains(t, penstock(t, "", "explain", "b.yaml", "a.yaml", "--later-wins", "GET /orders").out, "0 of 10")
	one := write(t, "one.yaml", "flow:\n  - {id: users, resource: GET /users, threshold: 1}\n  - {id: orders, resource: GET /orders, threshold: 50}\n")
	assert.Equal(t, result{}, penstock(t, "", "diff", "--later-wins", ".", one))
}

// Without errors, check reports the linter's findings for all files together, with codes.
func TestFindings(t *testing.T) {
	base := write(t, "base.yaml", "flow:\n  - {id: all, resource: GET /orders, threshold: 100}\n")
	mine := write(t, "mine.yaml", `flow:
  - id: mobile
    resource: GET /orders
    origin: mobile
    threshold: 150
  - id: odd
    resource: GET /odd
    threshold: 2.5
`)
	r := penstock(t, "", "check", base, mine)
	assert.Equal(t, exitOK, r.code)
	assert.Regexp(t, `^\S*mine.yaml:5:16: warning: flow\[0\].threshold: the rule never decides: flow\[0\] at \S*base.yaml:2:5 .* \(PN002\)
  5 \|     threshold: 150
    \|                \^
\S*mine.yaml:8:16: notice: flow\[1\].threshold: .* \(PN016\)
  8 \|     threshold: 2.5
    \|                \^
2 files: ok, 3 rules, 1 warning, 1 notice
$`, r.out)
	assert.Equal(t, exitFindings, penstock(t, "", "check", "--strict", base, mine).code)
	r = penstock(t, "", "check", "--format", "github", base, mine)
	assert.Contains(t, r.out, "::notice file="+mine+",line=8,col=16,title=PN016::flow[1].threshold: ")
	assert.Equal(t, exitOK, penstock(t, "", "check", "--strict", base).code)

	slow := write(t, "slow.yaml", "flow:\n  - {resource: a, threshold: 5, behavior: throttle, maxWait: 3s}\n")
	assert.Equal(t, exitOK, penstock(t, "", "check", "--strict", slow).code)
	r = penstock(t, "", "check", "--strict", "--timeout", "1s", slow)
	assert.Equal(t, exitFindings, r.code)
	assert.Contains(t, r.out, "(PN006)")

	bad := write(t, "bad.yaml", "flow: 1")
	assert.NotContains(t, penstock(t, "", "check", base, mine, bad).out, "PN002", "there are errors to mend first")
}

// Flags set the dialect and the family of files that don't show them.
func TestDialectByFlag(t *testing.T) {
	list := `[{"resource": "GET /orders"}]`
	r := penstock(t, list, "check", "-")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.out, "stdin:1:1: error: must be a mapping of rule families")
	r = penstock(t, `[{"resource": "GET /orders", "threshold": 5}]`, "check", "--dialect", "sentinel-go", "--family", "flow", "-")
	assert.Equal(t, result{exitOK, "stdin: ok, 1 rule\n", ""}, r)
}

// File contents can't send control sequences to the terminal that shows their errors.
func TestExcerpts(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, source string
		line, column int
		text, caret  string
		shown        bool
	}{
		{"a line", "a: 1\nb: 2\n", 2, 4, "b: 2", "   ^", true},
		{"beyond its end", "a: 1\n", 1, 9, "a: 1", "    ^", true},
		{"a tab", "a:\t1\n", 1, 4, "a: 1", "   ^", true},
		{"control characters", "a: \x1b[31m\u202e\n", 1, 4, "a: ·[31m·", "   ^", true},
		{"a long one", long, 1, 1, long[:68] + "…", "^", true},
		{"the middle of it", long, 1, 101, "…" + long[:68] + "…", strings.Repeat(" ", 41) + "^", true},
		{"its end", long, 1, 201, "…" + long[:40], strings.Repeat(" ", 41) + "^", true},
		{"no place", "a", 0, 0, "", "", false},
		{"no such line", "a", 5, 1, "", "", false},
		{"an empty line", "a\n\nb", 2, 1, "", "", false},
		{"no text", "\xff\xfe", 1, 1, "", "", false},
		{"carriage returns", "a: 1\r\nb: 2\r\n", 2, 1, "b: 2", "^", true},
	} {
		text, caret, shown := excerpt([]byte(c.source), c.line, c.column)
		assert.Equal(t, c.shown, shown, c.name)
		assert.Equal(t, c.text, text, c.name)
		assert.Equal(t, c.caret, caret, c.name)
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a,b:c%.yaml")
	require.NoError(t, os.WriteFile(name, []byte("flow:\n  - {resource: a, 'b%': 1}\n"), 0o644))
	r := penstock(t, "", "check", "--format", "github", name)
	assert.Contains(t, r.out, "a%2Cb%3Ac%25.yaml,line=2,col=19")
	assert.Contains(t, r.out, "::flow[0].b%25: unknown field")
}

// A file name can neither send control sequences to a terminal nor look like further lines.
func TestCheckNamesThatSteer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a\x1b[31m\nb.yaml: ok.yaml")
	if runtime.GOOS == "windows" {
		t.Skip("names of files on Windows can't have control characters")
	}
	require.NoError(t, os.WriteFile(file, []byte("flow: 1"), 0o644))
	r := penstock(t, "", "check", file)
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.out+r.err, "a·[31m·b.yaml: ok.yaml:1:7: error: flow: must be a list of rules, not 1\n")
	assert.NotContains(t, r.out+r.err, "\x1b")
}

// Devices, pipes and files that are too large are not read.
func TestWhatIsNoRuleFileIsNotRead(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, rules.MaxFileSize+1), 0o644))
	for _, name := range []string{large, filepath.Dir(large), os.DevNull} {
		f := new(command).read(name, rules.ParseOptions{})
		assert.Error(t, f.err, name)
		assert.Empty(t, f.data, name)
	}
}
