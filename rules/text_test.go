package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// Every text of up to three characters that have a meaning in YAML reads back after it is written, and
// so do the words that YAML reads as other types. An ordinary run takes a quarter of the texts of three
// characters, different ones each time.
// known bug 118
func TestEveryTextIsReadBack(t *testing.T) {
	const special = "<=>-?:,[]{}#&*!|'\"%@`~\\ \t\n.0x1aye_\u0085"
	texts := []string{
		"true", "False", "yes", "off", "NULL", "null", "~", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "1:20", "0x1F", "0o7", "0b1",
		"1_000", ".inf", "-.Inf", ".NaN", "+1", "1e400", "!!str a", "%YAML 1.2", "<<", "<< ", "- <<", "...", "---", "--- a", "\ufeff", "\U0001F600",
	}
	rnd := chance.Source(t)
	for _, a := range special {
		texts = append(texts, string(a))
		for _, b := range special {
			texts = append(texts, string(a)+string(b))
			for _, c := range special {
				if rnd.IntN(figure.Size(4, 4, 1, 1)) > 0 {
					continue
				}
				texts = append(texts, string(a)+string(b)+string(c))
			}
		}
	}
	slices.Sort(texts)
	for some := range slices.Chunk(slices.Compact(texts), 2000) {
		var set Set
		for _, text := range some {
			set.Flow = append(set.Flow, flow.Rule{Resource: text})
		}
		for name, write := range map[string]func() ([]byte, error){
			"r.yaml": set.YAML,
			"r.json": func() ([]byte, error) { return json.Marshal(set) },
		} {
			data, err := write()
			require.NoError(t, err)
			again, err := Parse(name, data)
			require.NoError(t, err)
			require.Equal(t, set, again)
		}
	}
}

// A number so small that it would be read as 0 is refused, since 0 blocks a resource or selects a
// default.
// known bug 116
func TestNumbersThatVanish(t *testing.T) {
	for text, field := range map[string]string{
		"flow: [{resource: a, threshold: 1e-400}]":                                                      "flow[0].threshold",
		"flow: [{resource: a, threshold: -0.00e-9}]":                                                    "",
		"flow: [{resource: a, threshold: 0.0e5}]":                                                       "",
		"flow: [{resource: a, threshold: 5e-324}]":                                                      "",
		"flow: [{resource: a, threshold: -1e-999999999999999999999}]":                                   "flow[0].threshold",
		"flow: [{resource: a, threshold: 9, memoryThreshold: 1e-400, lowMemory: 0.5, highMemory: 0.9}]": "flow[0].memoryThreshold",
		"flow: [{resource: a, threshold: 9, memoryThreshold: 1, lowMemory: 1e-400, highMemory: 0.9}]":   "flow[0].lowMemory",
		"outlier: [{resource: a, threshold: 0.5, maxEjected: 1e-400}]":                                  "outlier[0].maxEjected",
		"hotspot: [{resource: a, param: p, threshold: 1, exceptions: [{value: 1e-400, threshold: 1}]}]": "hotspot[0].exceptions[0].value",
		"hotspot: [{resource: a, param: p, threshold: 1, exceptions: [{value: 1, threshold: 1e-400}]}]": "hotspot[0].exceptions[0].threshold",
		"flow: [{resource: a, threshold: 1, behavior: throttle, maxWait: 0.5ns}]":                       "flow[0].maxWait",
		"flow: [{resource: a, threshold: 1, interval: 0.0000000001s}]":                                  "flow[0].interval",
		"flow: [{resource: a, threshold: 1, interval: 0h0.0m}]":                                         "",
		"breaker: [{resource: a, threshold: 1, ramp: 0.9ns}]":                                           "breaker[0].ramp",
	} {
		_, err := Parse("r.yaml", []byte(text))
		if field == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, ": "+field+": ", text)
		require.ErrorContains(t, err, " is too small: it would be read as 0", text)
	}
}

// Two lists that are printed alike are two lists. known bug 120
func TestRulesThatArePrintedAlike(t *testing.T) {
	const two = "authority: [{resource: a, origins: [a, b]}, {resource: a, origins: [a b]}, {resource: a, origins: [a, b c]}%s]"
	set, err := Parse("r.yaml", fmt.Appendf(nil, two, ""))
	require.NoError(t, err)
	require.Len(t, set.Authority, 3)
	_, err = Parse("r.yaml", fmt.Appendf(nil, two, ", {resource: a, origins: [a b]}"))
	require.EqualError(t, err, "r.yaml:1:110: authority[3]: is the same rule as authority[1] at 1:45: remove one")
}
