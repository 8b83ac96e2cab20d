package family_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// rule is a minimal rule for a table.
type rule struct {
	ID       string
	resource string
	match    spec.Match
	mode     spec.Mode
	value    int
	exclude  string // names, with commas
}

func (r rule) Info() spec.Info {
	info := spec.Info{ID: r.ID, Resource: r.resource, Match: r.match, Mode: r.mode}
	if r.exclude != "" {
		info.Exclude = strings.Split(r.exclude, ",")
	}
	return info
}

func (r rule) Like() string { return r.resource }

// controller records the arguments of Build.
type controller struct {
	rule     rule
	resource string
	old      *controller
}

var maker = family.Maker[rule, controller]{
	Build: func(r rule, _ *engine.Record, at *engine.Binding, old *controller) *controller {
		return &controller{r, at.Resource.Name(), old}
	},
	Rule: func(c *controller) *rule { return &c.rule },
}

func table(t *testing.T, rules ...rule) *family.Index[rule, controller] {
	t.Helper()
	tb, err := family.NewTable(1, rules, maker, nil)
	require.NoError(t, err)
	return tb
}

func ids(rules []rule) string {
	var all []string
	for _, r := range rules {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

func TestTableFindsRulesInTheirOrder(t *testing.T) {
	tb := table(t,
		rule{ID: "all", resource: ".*", match: spec.MatchRegex},
		rule{ID: "orders", resource: "orders"},
		rule{ID: "off", resource: "orders", mode: spec.Off},
		rule{ID: "or", resource: "orders|carts", match: spec.MatchRegex},
		rule{ID: "shadow", resource: "orders", mode: spec.Shadow},
		rule{ID: "part", resource: "order", match: spec.MatchRegex},
		rule{ID: "off too", resource: ".*", match: spec.MatchRegex, mode: spec.Off},
		rule{ID: "dot", resource: "o.ders", match: spec.MatchRegex},
		rule{ID: "lines", resource: "(?m)orders$", match: spec.MatchRegex},
		rule{ID: "carts", resource: "carts"},
	)
	for resource, want := range map[string]string{
		"orders":        "all orders or shadow dot lines",
		"carts":         "all or carts",
		"order":         "all part",
		"xorders":       "all",
		"orders2":       "all",
		"o.ders":        "all dot",
		"orders|carts":  "all",
		"orders\nmore":  "all",
		"orders\n":      "all",
		"":              "all",
		"ORDERS":        "all",
		"sub\norders":   "all",
		"o\u00e9ders":   "all dot",
		"o\xffders":     "all dot",
		"ordersorders":  "all",
		"(overflow)":    "all or part dot lines", // it stands for any name
		"machine-root":  "all",
		"orders|orders": "all",
	} {
		assert.Equal(t, want, ids(tb.For(resource)), "%q", resource)
	}
}

func TestTableRefusesAPatternThatIsNone(t *testing.T) {
	_, err := family.NewTable(1, []rule{{ID: "r", resource: "(", match: spec.MatchRegex}}, maker, nil)
	require.ErrorContains(t, err, `rule "r": is not a valid regular expression: missing closing ): "("`)
}

// Many small expressions are bounded together, like one large expression.
func TestTableBoundsItsPatterns(t *testing.T) {
	make := func(n int, mode spec.Mode) error {
		var rules []rule
		for i := range n {
			rules = append(rules, rule{ID: fmt.Sprintf("r%d", i), resource: "a{999}", match: spec.MatchRegex, mode: mode}) // 1000 steps each
		}
		_, err := family.NewTable(1, rules, maker, nil)
		return err
	}
	require.NoError(t, make(50, spec.Enforce))
	require.EqualError(t, make(51, spec.Shadow), `rule "r50" brings the regular expressions to 51000 steps, the maximum is 50000`)
	require.NoError(t, make(51, spec.Off), "rules that are off are not compiled")
}

// A default rule applies to names without any other enforced rule, except names it excludes.
func TestTableDefaultRules(t *testing.T) {
	all := rule{ID: "all", resource: "*", exclude: "x,y"}
	tb := table(t, all,
		rule{ID: "own", resource: "own"},
		rule{ID: "pattern", resource: "p.*", match: spec.MatchRegex},
		rule{ID: "shadow", resource: "shadow", mode: spec.Shadow},
		rule{ID: "off", resource: "off", mode: spec.Off},
		rule{ID: "off by default", resource: "*", mode: spec.Off})
	for name, want := range map[string]string{
		"a": "all", "x": "", "y": "", "own": "own", "pay": "pattern", "shadow": "all shadow", "off": "all", "x,y": "all",
	} {
		assert.Equal(t, want, ids(tb.For(name)), name)
	}

	e, _ := newEngine(t, engine.Config{})
	f := put(t, e, all, rule{ID: "own", resource: "own"})
	before := f.bound(t, "a")
	require.Len(t, before, 1)
	f = put(t, e, all)
	assert.Same(t, before[0], f.bound(t, "a")[0], "the remaining controllers continue")
	assert.Nil(t, f.bound(t, "own")[0].old)
	f = put(t, e, all, rule{ID: "own", resource: "a"})
	assert.Equal(t, "own", ids(f.For("a")))
	assert.Len(t, f.bound(t, "a"), 1)
}
