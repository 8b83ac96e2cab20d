package pages_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

func TestMain(m *testing.M) { books.Main(m) }

// docs is the folder of each test, so that paths are relative to it, like the links of its pages.
// The go command notices a change of a page only if the test itself enters the folder, not
// TestMain.
const docs = "../../../docs"

// block is a fenced code block: the info after the fence, and the text.
type block struct{ info, text string }

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []block
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		found = append(found, block{m[1], m[2]})
	}
	return found
}

// pagesOfRules returns the overview of rules, a page for each family, and the one on limits that a
// cluster shares.
func pagesOfRules(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("rules/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 10)
	return append(pages, "rules.md", "cluster.md")
}

// Every rule file on a page loads. A file marked bad is refused with the error shown after it.
func TestRuleFilesShown(t *testing.T) {
	t.Chdir(docs)
	for _, page := range append(pagesOfRules(t), "../README.md", "migrating.md", "choosing.md") {
		shown := blocks(t, page)
		for i, b := range shown {
			if !strings.HasPrefix(b.info, "yaml") {
				continue
			}
			set, err := rules.Parse("rules.yaml", []byte(b.text))
			switch b.info {
			case "yaml":
				if assert.NoError(t, err, "%s:\n%s", page, b.text) {
					assert.NoError(t, newGuard(t, nil).LoadRules(set), "%s:\n%s", page, b.text)
				}
			case "yaml bad":
				if assert.Error(t, err, "%s:\n%s", page, b.text) && assert.Less(t, i+1, len(shown)) {
					assert.Equal(t, block{"text error", err.Error() + "\n"}, shown[i+1], page)
				}
			default:
				t.Errorf("%s: a block is marked %q: use yaml or yaml bad", page, b.info)
			}
		}
	}
}

// Every Sentinel file on a page loads, and becomes the native file shown after it. If none is shown,
// it is refused with the shown error, or loads with the shown warning.
func TestFilesOfSentinelShown(t *testing.T) {
	t.Chdir(docs)
	shown := append(blocks(t, "sentinel.md"), blocks(t, "migrating.md")...)
	for i, b := range shown {
		if b.info != "json" {
			continue
		}
		require.Less(t, i+1, len(shown))
		parsed, err := rules.ParseWith("rules.json", []byte(b.text), rules.ParseOptions{})
		switch next := shown[i+1]; next.info {
		case "yaml":
			if assert.NoError(t, err, b.text) {
				text, err := parsed.Set.YAML()
				assert.NoError(t, err)
				assert.Equal(t, next.text, string(text))
				assert.Empty(t, parsed.Warnings, b.text)
				assert.NoError(t, newGuard(t, nil).LoadRules(parsed.Set), b.text)
			}
		case "text warning":
			if assert.NoError(t, err, b.text) && assert.Len(t, parsed.Warnings, 1, b.text) {
				assert.Equal(t, next.text, parsed.Warnings[0].String()+"\n")
			}
		case "text error":
			if assert.Error(t, err, b.text) {
				assert.Equal(t, next.text, err.Error()+"\n")
			}
		default:
			t.Errorf("a block of json is followed by one marked %q", next.info)
		}
	}
}

// Every key in Sentinel's rules has a row, and every warning a paragraph.
func TestEveryKeyOfSentinelIsDescribed(t *testing.T) {
	t.Chdir(docs)
	text, err := os.ReadFile("sentinel.md")
	require.NoError(t, err)
	for _, rule := range []any{
		sentinel.JavaFlow{}, sentinel.JavaBreaker{}, sentinel.JavaHotspot{}, sentinel.JavaItem{}, sentinel.JavaSystem{}, sentinel.JavaAuthority{},
		sentinel.GoFlow{}, sentinel.GoBreaker{}, sentinel.GoHotspot{}, sentinel.GoItem{}, sentinel.GoSystem{}, sentinel.GoIsolation{},
	} {
		for field := range reflect.TypeOf(rule).Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			assert.Regexp(t, "(?m)^\\|.*`"+key+"`", string(text), "a row of a table, for %T", rule)
		}
	}
	sources, err := filepath.Glob("../internal/sentinel/*.go")
	require.NoError(t, err)
	foreign, err := filepath.Glob("../rules/foreign*.go")
	require.NoError(t, err)
	named := 0
	for _, path := range append(sources, foreign...) {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?:Warning\{|\{\{|d\.warn\()"([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			assert.Contains(t, string(text), "\n| `"+m[1]+"` |", "a row of the warnings")
			named++
		}
	}
	assert.Greater(t, named, 8)
}

// Every key has a row in the table of its family's page. Those of flow and isolation rules also
// have a paragraph, there or in the overview.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Chdir(docs)
	overview, err := os.ReadFile("rules.md")
	require.NoError(t, err)
	for name, rule := range map[string]reflect.Type{
		"flow": reflect.TypeFor[flow.Rule](), "isolation": reflect.TypeFor[isolation.Rule](), "adaptive": reflect.TypeFor[adaptive.Rule](),
		"authority": reflect.TypeFor[authority.Rule](), "system": reflect.TypeFor[system.Rule](), "breaker": reflect.TypeFor[breaker.Rule](),
		"upstream": reflect.TypeFor[upstream.Rule](), "outlier": reflect.TypeFor[outlier.Rule](), "hotspot": reflect.TypeFor[hotspot.Rule](),
	} {
		page, err := os.ReadFile(filepath.Join("rules", name+".md"))
		require.NoError(t, err)
		assert.Contains(t, string(overview), "\n| [`"+name+"`](rules/"+name+".md) |", "a row of the overview")
		for field := range rule.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			assert.Regexp(t, "(?m)^\\|[^|]*`"+key+"`[^|]*\\|", string(page), "%s: a row of its table", name)
			if name == "flow" || name == "isolation" {
				assert.Contains(t, string(page)+string(overview), "**`"+key+"`**", "%s: a paragraph", name)
			}
		}
	}
}

// The picture has a column for each slot of the chain, in its order.
func TestThePictureShowsEverySlot(t *testing.T) {
	t.Chdir(docs)
	picture, err := os.ReadFile("architecture.svg")
	require.NoError(t, err)
	rest := string(picture)
	for _, name := range trial.Chain().Names() {
		_, after, ok := strings.Cut(rest, `data-slot="`+name+`"`)
		require.True(t, ok, "%s should follow the slots before it", name)
		rest = after
	}
}

// The warm-up curve on the page on flow rules is the current one.
func TestWarmUpCurveShown(t *testing.T) {
	t.Chdir(docs)
	clock := clocks.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	g := newGuard(t, clock)
	require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
		{Resource: "GET /search", Threshold: 100, Behavior: flow.WarmUp},
	}}))
	var curve []string
	for range 14 {
		passed := 0
		for range 500 {
			if e, err := g.Entry(context.Background(), "GET /search"); err == nil {
				e.Exit()
				passed++
			}
			clock.Advance(2 * time.Millisecond)
		}
		curve = append(curve, strconv.Itoa(passed))
	}
	for _, b := range blocks(t, "rules/flow.md") {
		if _, line, ok := strings.Cut(b.text, "\npassed "); ok {
			assert.Equal(t, curve, strings.Fields(line))
			return
		}
	}
	t.Error("rules/flow.md shows no curve")
}

// idle is a machine that can be read wherever the tests run.
type idle struct{}

func (idle) Load(int64) (float64, error) { return 0, nil }
func (idle) CPU(int64) (float64, error)  { return 0, nil }
func (idle) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: 1, Limit: 1 << 34}, nil
}

func newGuard(t *testing.T, clock *clocks.Manual) *api.Guard {
	t.Helper()
	t.Setenv("REDIS_PASSWORD", "secret")
	cfg := api.Config{Host: idle{}, Stores: map[string]func(string) (store.Store, error){
		"redis":  func(string) (store.Store, error) { return cluster.NewMemory(clocks.NewSystem()), nil },
		"rediss": func(string) (store.Store, error) { return cluster.NewMemory(clocks.NewSystem()), nil },
	}}
	if clock != nil {
		cfg.Clock = clock
	}
	g, err := api.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	return g
}
