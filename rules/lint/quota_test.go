package lint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// A quota is compared with other rules by what it admits in their intervals and periods.
func TestQuotasBesideOtherRules(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a rate and a quota", "flow: [{resource: a, threshold: 10}, {resource: a, threshold: 100, per: day}]", ""},
		{"a quota and a rate that it can't reach", "flow: [{resource: a, threshold: 10, per: day}, {resource: a, threshold: 20}]", "PN002"},
		{"at midnight it can", "flow: [{resource: a, threshold: 10, per: day}, {resource: a, threshold: 19}]", ""},
		{"two of one calendar", "flow: [{resource: a, threshold: 10, per: day}, {id: b, resource: a, threshold: 20, per: day}]", "PN002"},
		{"of two", "flow: [{resource: a, threshold: 10, per: day}, {resource: a, threshold: 20, per: day, timezone: Asia/Tokyo}]", ""},
		{"values of one calendar", "hotspot: [{resource: a, param: u, threshold: 10, per: day}, {id: b, resource: a, param: u, threshold: 20, per: day}]", "PN002"},
		{"of two", "hotspot: [{resource: a, param: u, threshold: 10, per: day}, {resource: a, param: u, threshold: 20, per: week}]", ""},
		{"a breaker", "flow: [{resource: a, threshold: 2, per: day}]\nbreaker: [{resource: a, threshold: 0.5, minCalls: 5}]", "PN010"},
		{"that can open", "flow: [{resource: a, threshold: 3, per: day}]\nbreaker: [{resource: a, threshold: 0.5, minCalls: 5}]", ""},
	} {
		parsed, err := rules.Parse("r.yaml", []byte(tt.text))
		require.NoError(t, err)
		got := ""
		for _, f := range lint.CheckSet(parsed, lint.Options{}) {
			got += f.Code
		}
		assert.Equal(t, tt.want, got, "%s: %s", tt.name, tt.text)
	}
}
