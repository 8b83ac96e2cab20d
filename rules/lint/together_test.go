package lint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// A rule that counts all its names together displaces no other, makes none superfluous, and is none of
// the rules of a single name.
func TestTogetherIsComparedWithItself(t *testing.T) {
	all := flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Together: true, Threshold: 5}
	inbound := flow.Rule{ID: "inbound", Resource: "*", Together: true, Threshold: 5}
	each := flow.Rule{ID: "each", Resource: "*", Threshold: 50}
	assert.Empty(t, lint.CheckSet(rules.Set{Flow: []flow.Rule{all, inbound, each}}, lint.Options{}))

	everyName := flow.Rule{ID: "every name", Resource: ".*", Match: spec.MatchRegex, Threshold: 50}
	assert.Empty(t, lint.CheckSet(rules.Set{Flow: []flow.Rule{all, inbound, everyName}}, lint.Options{}))

	looser := inbound
	looser.ID, looser.Threshold = "looser", 9
	found := lint.CheckSet(rules.Set{Flow: []flow.Rule{inbound, looser}}, lint.Options{})
	assert.Len(t, found, 1)
	assert.Equal(t, "PN002", found[0].Code)
}
