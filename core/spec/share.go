package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/pattern"
)

// Share divides a rule's limit between tenants when there is too little. Alone, a tenant may have all
// of it. While others wait, each gets a part in proportion to its weight, and what one doesn't need
// goes to the others (max-min fairness). In a rule file it is
//
//	share: {by: param tenant, weightBy: param plan, weights: {gold: 4}}
//
// The zero value shares nothing. Needs a queue, and no Cluster.
type Share struct {
	// By names the tenant: "param tenant" is the attachment that api.Param gave this name, "origin"
	// is the caller. It should be authenticated: a caller that can invent tenants gets a share for
	// each. Calls without one are one tenant. Required.
	By string `yaml:"by"`
	// WeightBy is the attachment whose values Weights names, such as "param plan", or "origin". The
	// latest call of a tenant decides. Empty means that Weights names tenants.
	WeightBy string `yaml:"weightBy,omitempty"`
	// Weights are those of tenants, or of the values of WeightBy, from 1 to 1000; 1 for others. At
	// most 1000.
	Weights map[string]int `yaml:"weights,omitempty"`
	// PerShareQueue is the number of calls of a tenant that may wait, up to a million, and to MaxQueue
	// if the rule has one; 0 means as many as may wait.
	PerShareQueue int `yaml:"perShareQueue,omitempty"`
	// MaxShares is the number of tenants with a share of their own, besides those in Weights. 1 to
	// 10,000; 0 means 1000. Further ones are divided among 16 shares by a hash of their names.
	MaxShares int `yaml:"maxShares,omitempty"`
}

// The ranges of a share's fields.
const (
	MaxWeight     = 1000
	MaxWeights    = 1000
	MaxMaxShares  = 10_000
	defaultShares = 1000
)

// Begin is called before the fields of a file are read: a mapping without By is an error.
func (s *Share) Begin() { s.MaxShares = defaultShares }

// Given reports whether any field is set.
func (s *Share) Given() bool {
	return s.By != "" || s.WeightBy != "" || len(s.Weights) > 0 || s.PerShareQueue != 0 || s.MaxShares != 0
}

// Normalized returns the share with its defaults filled in, for a rule whose queue has room for that
// many calls.
func (s Share) Normalized(maxQueue int) Share {
	if !s.Given() {
		return Share{}
	}
	if s.Weights = maps.Clone(s.Weights); len(s.Weights) == 0 {
		s.Weights = nil
	}
	s.PerShareQueue = cmp.Or(s.PerShareQueue, maxQueue)
	s.MaxShares = cmp.Or(s.MaxShares, defaultShares)
	return s
}

// Check returns a [FieldError] for the first invalid field. maxQueue is the number of calls that may
// wait, and queue names it for people.
func (s *Share) Check(maxQueue int, queue string) error {
	switch {
	case !s.Given():
		return nil
	case s.By == "":
		return BadField("share.by", `is required: name the tenant of a call, as in "param tenant" or "origin"`)
	case s.WeightBy != "" && len(s.Weights) == 0:
		return BadField("share.weightBy", "has no meaning without weights: set the weights of its values")
	case s.PerShareQueue < 0 || s.PerShareQueue > maxQueue:
		return BadField("share.perShareQueue", "is %d: use a whole number from 0 to %s%d", s.PerShareQueue, queue, maxQueue)
	case s.MaxShares < 0 || s.MaxShares > MaxMaxShares:
		return BadField("share.maxShares", "is %d: use a whole number from 0 to %d", s.MaxShares, MaxMaxShares)
	case len(s.Weights) > MaxWeights:
		return BadField("share.weights", "has %d items, the maximum is %d: put tenants in groups with weightBy", len(s.Weights), MaxWeights)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Weights)) {
		switch w := s.Weights[name]; {
		case name == "" || len(name) > pattern.MaxName:
			return BadField("share.weights", "names %.60q: use 1 to %d bytes", name, pattern.MaxName)
		case w < 1 || w > MaxWeight:
			return BadField("share.weights", "gives %.60q %d: use a whole number from 1 to %d", name, w, MaxWeight)
		}
	}
	return cmp.Or(checkSource("share.by", s.By), checkSource("share.weightBy", s.WeightBy))
}

// Origin names the caller where a rule names a value of a call, and ParamPrefix begins the name of
// an attachment.
const (
	Origin      = "origin"
	ParamPrefix = "param "
)

// checkSource refuses text that names neither an attachment nor the caller.
func checkSource(field, text string) error {
	name, param := strings.CutPrefix(text, ParamPrefix)
	switch {
	case text == "" || text == Origin:
		return nil
	case !param || name == "" || strings.TrimSpace(name) != name:
		return BadField(field, `is %.60q: use "param" and the name of an attachment, as in "param tenant", or "origin"`, text)
	}
	return CheckName(field, name)
}
