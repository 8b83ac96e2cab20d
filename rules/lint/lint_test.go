package lint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

func TestMain(m *testing.M) { books.Main(m) }

// knowledge holds, for a section, the linter's knowledge in addition to the file.
var knowledge = map[string]lint.Options{
	"PN001": {Seen: &lint.Seen{Resources: []string{"GET /orders", "GET /users/7"}}},
	"PN003": {Seen: &lint.Seen{Resources: []string{"POST /orders", "GET /orders"}, Contexts: []string{"http"}}},
	"PN004": {Seen: &lint.Seen{Resources: []string{"GET /orders"}, Rules: []core.RuleStats{
		{Kind: core.KindHotspot, ID: "hotspot:GET /orders:param=user", Asked: true, Details: hotspot.Stats{}},
		{Kind: core.KindHotspot, ID: "hotspot:GET /orders:param=key", Asked: true, Details: hotspot.Stats{Top: []hotspot.ValueStats{{Value: `""`, Refused: 9}}}},
		{Kind: core.KindHotspot, ID: "hotspot:GET /orders:param=tenant", Asked: true, Details: hotspot.Stats{Top: []hotspot.ValueStats{{Passed: 1}}}},
	}}},
	"PN005": {Seen: &lint.Seen{Resources: []string{"GET /orders"}}},
	"PN006": {CallerTimeout: 2 * time.Second},
	"PN031": {Seen: &lint.Seen{Resources: []string{"GET /orders"}, Rules: []core.RuleStats{
		{Kind: core.KindHotspot, ID: "mistyped", Asked: true, Details: hotspot.Stats{Values: 1, UnknownPlans: 7, Top: []hotspot.ValueStats{{Passed: 1}}}},
		{Kind: core.KindHotspot, ID: "listed", Asked: true, Details: hotspot.Stats{Values: 1, Top: []hotspot.ValueStats{{Passed: 1}}}},
	}}},
	"PN032": {Seen: &lint.Seen{Resources: []string{"GET /orders"}, Rules: []core.RuleStats{
		{Kind: core.KindHotspot, ID: "alone", Asked: true, Details: hotspot.Stats{Values: 1, Top: []hotspot.ValueStats{{Passed: 1}}, LimitsFromCode: &hotspot.LimitStats{Errors: 3, LastError: "api.Config.Limits is nil: set it, or remove limitsFromCode"}}},
		{Kind: core.KindHotspot, ID: "answered", Asked: true, Details: hotspot.Stats{Values: 1, Top: []hotspot.ValueStats{{Passed: 1}}, LimitsFromCode: &hotspot.LimitStats{Answers: 9, Errors: 1, LastError: "no connection"}}},
	}}},
	"PN033": {Seen: &lint.Seen{Resources: []string{"GET /orders"}, Rules: []core.RuleStats{
		{Kind: core.KindHotspot, ID: "small", Asked: true, Details: hotspot.Stats{Values: 100, Overflowed: 7, Top: []hotspot.ValueStats{{Passed: 1}}}},
		{Kind: core.KindHotspot, ID: "large", Asked: true, Details: hotspot.Stats{Values: 100, Top: []hotspot.ValueStats{{Passed: 1}}}},
	}}},
	"PN022": {CallerTimeout: 2 * time.Second},
}

// section is the page's section of a code.
type section struct{ code, fails, finding, passes string }

var (
	headings = regexp.MustCompile(`(?m)^## (PN\d{3}): \S.*$`)
	fences   = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
)

func sections(t *testing.T) (all []section) {
	t.Helper()
	page, err := os.ReadFile("../../docs/lint.md")
	require.NoError(t, err)
	at := headings.FindAllSubmatchIndex(page, -1)
	for i, h := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		blocks := fences.FindAllSubmatch(page[h[1]:end], -1)
		var s section
		s.code = string(page[h[2]:h[3]])
		require.Len(t, blocks, 3, s.code)
		for j, info := range []string{"yaml fails", "text finding", "yaml passes"} {
			require.Equal(t, info, string(blocks[j][1]), s.code)
		}
		s.fails, s.finding, s.passes = string(blocks[0][2]), string(blocks[1][2]), string(blocks[2][2])
		all = append(all, s)
	}
	return all
}

func check(t *testing.T, text string, opts lint.Options) (lines string) {
	t.Helper()
	p, err := rules.ParseWith("rules.yaml", []byte(text), rules.ParseOptions{})
	require.NoError(t, err, text)
	for _, f := range lint.Check(p, opts) {
		lines += f.String() + "\n"
	}
	return lines
}

// For each code the page shows a file with exactly the shown findings, and a file without any.
func TestPage(t *testing.T) {
	for _, s := range sections(t) {
		t.Run(s.code, func(t *testing.T) {
			found := check(t, s.fails, knowledge[s.code])
			assert.Equal(t, s.finding, found)
			for line := range strings.Lines(found) {
				assert.Contains(t, line, "("+s.code+")")
			}
			assert.Empty(t, check(t, s.passes, knowledge[s.code]))
		})
	}
}

// The page shows these findings for one family each; others have them, too.
func TestOtherFamilies(t *testing.T) {
	for _, c := range []struct {
		file, finding string
		opts          lint.Options
	}{
		{
			file: "isolation:\n  - {resource: render pdf, threshold: 16}\n  - {id: few, resource: render pdf, threshold: 8}\n",
			finding: "rules.yaml:2:39: isolation[0].threshold: the rule never decides: " +
				"isolation[1] at 3:5 never admits more; remove or correct one of them (PN002)\n",
		},
		{
			file: "isolation:\n  - {resource: render pdf, threshold: 8, maxQueue: 100, maxWait: 10s}\n",
			finding: "rules.yaml:2:66: isolation[0].maxWait: calls wait for up to 10s, but their callers " +
				"give up after 2s: make maxWait shorter (PN006)\n",
			opts: lint.Options{CallerTimeout: 2 * time.Second},
		},
		{
			file: "hotspot:\n  - {resource: POST /mail, param: user, threshold: 6, interval: 1m, behavior: throttle, maxWait: 5s}\n",
			finding: "rules.yaml:2:98: hotspot[0].maxWait: no call ever waits: the next turn is 10s away, " +
				"and maxWait is 5s; make maxWait longer, or reject (PN011)\n",
		},
		{ // known bug 270: calls and what they cost, in one unit or in several, say nothing about each other
			file: "hotspot:\n" +
				"  - {id: calls, resource: POST /chat, param: user, threshold: 6}\n" +
				"  - {id: tokens, resource: POST /chat, param: user, unit: tokens, threshold: 900}\n" +
				"  - {id: money, resource: POST /chat, param: user, unit: microUSD, threshold: 90000}\n",
		},
		{ // known bug 281: a rule for what calls cost has a count of its own
			file: "isolation:\n" +
				"  - {id: bytes, resource: POST /chat, unit: bytes, threshold: 10}\n" +
				"  - {id: calls, resource: POST /chat, threshold: 100, maxQueue: 500, maxWait: 2s, share: {by: param tenant}}\n",
		},
		{
			file: "flow:\n  - {resource: PUT /file, unit: bytes, threshold: 1}\nisolation:\n  - {resource: PUT /file, unit: byte, threshold: 1}\n",
			finding: "rules.yaml:4:33: isolation[0].unit: \"byte\" is not the unit \"bytes\" of flow[0] at 2:5, so a cost in one " +
				"doesn't count in the other: if both mean the same, write \"bytes\" (PN026)\n",
		},
	} {
		assert.Equal(t, c.finding, check(t, c.file, c.opts))
	}
}

// The page has a section for every code, in their order.
func TestEveryCodeHasASection(t *testing.T) {
	var want, got []string
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`l\.add\("(PN\d+)"`).FindAllSubmatch(source, -1) {
			want = append(want, string(m[1]))
		}
	}
	slices.Sort(want)
	for _, s := range sections(t) {
		got = append(got, s.code)
	}
	assert.Equal(t, slices.Compact(want), got)
}

// Every finding of the linter in the rule files of this repository is true. Test files have a few rules
// that are odd on purpose.
func TestRuleFilesOfThisRepository(t *testing.T) {
	odd := map[string][]string{
		"rules/testdata/set.json": {"PN011 flow[4]", "PN015 system[2]", "PN017 flow[9]"},
		"rules/testdata/set.yaml": {"PN011 flow[4]", "PN015 system[2]", "PN017 flow[9]"},
	}
	files := make(map[string]string)
	for _, root := range []string{"../../examples", "../../adapters", "../../rules/testdata", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (filepath.Ext(path) == ".yaml" || filepath.Ext(path) == ".json") {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				files[filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash("../../")))] = string(text)
			}
			return nil
		})
		require.NoError(t, err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	below, err := filepath.Glob("../../docs/*/*.md") // of adapters, and of each family of rules
	require.NoError(t, err)
	for _, page := range append(append(pages, below...), "../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range fences.FindAllSubmatch(text, -1) {
			if info := string(m[1]); info == "yaml" || info == "json" {
				files[filepath.Base(page)+": "+string(m[2])] = string(m[2])
			}
		}
	}
	looked := 0
	for name, text := range files {
		p, err := rules.ParseWith("rules.yaml", []byte(text), rules.ParseOptions{})
		if err != nil {
			continue // not a rule file, or an invalid one
		}
		looked++
		var found []string
		for _, f := range lint.Check(p, lint.Options{}) {
			found = append(found, fmt.Sprintf("%s %s[%d]", f.Code, f.Family, f.Rule))
		}
		assert.Equal(t, odd[name], found, name)
	}
	assert.Greater(t, looked, 40)
}

// Rules of several files are compared with each other, and each finding is in the file that has the
// rule.
func TestSeveralFiles(t *testing.T) {
	var files []rules.Parsed
	for name, text := range map[string]string{
		"a.yaml": "flow:\n  - {id: x, resource: GET /x, threshold: 1}\n  - {id: all, resource: GET /orders, threshold: 100}\n",
		"b.yaml": "flow:\n  - {id: half, resource: GET /x, threshold: 0.5}\nisolation:\n  - {resource: GET /x, threshold: 1}\n",
		"c.yaml": "flow:\n  - {id: mobile, origin: mobile, resource: GET /orders, threshold: 150}\n",
	} {
		p, err := rules.ParseWith(name, []byte(text), rules.ParseOptions{})
		require.NoError(t, err)
		files = append(files, p)
	}
	slices.SortFunc(files, func(a, b rules.Parsed) int { return strings.Compare(a.Place("", 0, "").File, b.Place("", 0, "").File) })
	var found []string
	for _, f := range lint.CheckFiles(files, lint.Options{}) {
		found = append(found, f.String())
	}
	require.Len(t, found, 3)
	assert.Regexp(t, `^a.yaml:2:\d+: flow\[0\].*flow\[0\] at b.yaml:2:5.*\(PN002\)$`, found[0])
	assert.Regexp(t, `^b.yaml:2:\d+: flow\[0\].threshold: .*\(PN009\)$`, found[1])
	assert.Regexp(t, `^c.yaml:2:\d+: flow\[0\].*flow\[1\] at a.yaml:3:5.*\(PN002\)$`, found[2])
}

// A rule that shares its limit can take effect despite a stricter local rule: other members use up
// the shared limit too.
func TestASharedLimitIsNotInVain(t *testing.T) {
	p, err := rules.ParseWith("rules.yaml", []byte(`
flow:
  - {id: a, resource: GET /x, threshold: 10}
  - {id: b, resource: GET /x, threshold: 100, cluster: {}}
isolation:
  - {id: c, resource: GET /x, threshold: 10}
  - {id: d, resource: GET /x, threshold: 100, cluster: {}}
`), rules.ParseOptions{})
	require.NoError(t, err)
	assert.Empty(t, lint.Check(p, lint.Options{}))
}

// Two stars are not a pattern here, in any name or path.
func TestTwoStars(t *testing.T) {
	const name, path = "is read as the name of one resource: ", "is read as one path: "
	for text, want := range map[string]string{
		"flow: [{resource: GET /a/**, threshold: 1}]":                               "rules.yaml:1:19: flow[0].resource: \"GET /a/**\" looks like a pattern and " + name + "write \"GET /a/*\" with `match: prefix` (PN014)\n",
		"breaker: [{resource: GET /**/a, threshold: 0.5}]":                          "rules.yaml:1:22: breaker[0].resource: \"GET /**/a\" looks like a pattern and " + name + "write a star for each part, with `match: path`, or an expression, with `match: regex` (PN014)\n",
		"isolation: [{resource: GET /a/*/**, threshold: 1}]":                        "rules.yaml:1:24: isolation[0].resource: \"GET /a/*/**\" looks like a pattern and " + name + "write a star for each part, with `match: path`, or an expression, with `match: regex` (PN014)\n",
		"hotspot: [{resource: /a/**, param: u, threshold: 1}]":                      "rules.yaml:1:22: hotspot[0].resource: \"/a/**\" looks like a pattern and " + name + "write \"/a/*\" with `match: prefix` (PN014)\n",
		"authority: [{resource: /a/**, origins: [b]}]":                              "rules.yaml:1:24: authority[0].resource: \"/a/**\" looks like a pattern and " + name + "write \"/a/*\" with `match: prefix` (PN014)\n",
		"flow: [{resource: '*', threshold: 1, exclude: [/a/**]}]":                   "rules.yaml:1:47: flow[0].exclude: \"/a/**\" looks like a pattern and " + name + "list the names, or write a separate rule with match (PN014)\n",
		"groups: [{id: g, paths: [{path: /a/**}]}]":                                 "rules.yaml:1:25: groups[0].paths: \"/a/**\" looks like a pattern and " + path + "write \"/a/*\" with `match: prefix` (PN014)\n",
		"flow: [{resource: a, threshold: 1, relation: associated, ref: GET /b/**}]": "rules.yaml:1:63: flow[0].ref: \"GET /b/**\" looks like a pattern and " + name + "write the full name (PN014)\n",
		"flow: [{resource: a, threshold: 1, relation: chain, ref: web.*}]":          "rules.yaml:1:58: flow[0].ref: \"web.*\" looks like a pattern and is read as the name of one context: write the full name (PN014)\n",
		"flow: [{resource: GET /a/**, threshold: 1, mode: off}]":                    "",
		"flow: [{resource: GET /files/*, threshold: 1}]":                            "",
		"flow: [{resource: '/a/**', match: regex, threshold: 1}]":                   "",
	} {
		if strings.Contains(text, "regex") {
			text = strings.Replace(text, "/a/**", "/a/[*]{2}", 1)
		}
		assert.Equal(t, want, check(t, text, lint.Options{}), text)
	}
}
