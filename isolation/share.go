package isolation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
)

// Share divides the permits of a rule between tenants when there are too few. Alone, a tenant may
// have all of them. While others wait, each gets permits in proportion to its weight, for the time
// that its calls take, and what one doesn't need goes to the others (max-min fairness). In a rule
// file it is
//
//	share: {by: param tenant, weightBy: param plan, weights: {gold: 4}}
//
// The zero value shares nothing. Needs MaxQueue, and no Cluster. Of several enforced rules of a
// resource only the tightest has a queue, and only its share has an effect.
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
	// PerShareQueue is the number of calls of a tenant that may wait, up to MaxQueue; 0 means that
	// many.
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

func (s *Share) given() bool {
	return s.By != "" || s.WeightBy != "" || len(s.Weights) > 0 || s.PerShareQueue != 0 || s.MaxShares != 0
}

// normalized returns the share with its defaults filled in.
func (s Share) normalized(r *Rule) Share {
	if !s.given() {
		return Share{}
	}
	if s.Weights = maps.Clone(s.Weights); len(s.Weights) == 0 {
		s.Weights = nil
	}
	s.PerShareQueue = cmp.Or(s.PerShareQueue, r.MaxQueue)
	s.MaxShares = cmp.Or(s.MaxShares, defaultShares)
	return s
}

// checkShed refuses orders that can't be.
func (r Rule) checkShed() error {
	switch err := spec.CheckShed(r.Shed, spec.Floors{}); {
	case err != nil || r.Shed == spec.ShedNone:
		return err
	case r.Shared():
		return spec.BadField("shed", "has no meaning for cluster, which has no queue: remove shed or cluster")
	case r.MaxQueue == 0:
		return spec.BadField("shed", "needs a queue, where calls of lower levels wait: set maxQueue and maxWait")
	}
	return nil
}

// checkShare refuses shares that can't be.
func (r Rule) checkShare() error {
	s := &r.Share
	if !s.given() {
		return nil
	}
	switch {
	case r.Shared():
		return spec.BadField("share", "has no meaning for cluster, which has no queue: remove share or cluster")
	case r.MaxQueue == 0:
		return spec.BadField("share", "needs a queue, where calls wait for their part: set maxQueue and maxWait")
	case s.By == "":
		return spec.BadField("share.by", `is required: name the tenant of a call, as in "param tenant" or "origin"`)
	case s.WeightBy != "" && len(s.Weights) == 0:
		return spec.BadField("share.weightBy", "has no meaning without weights: set the weights of its values")
	case s.PerShareQueue < 0 || s.PerShareQueue > r.MaxQueue:
		return spec.BadField("share.perShareQueue", "is %d: use a whole number from 0 to maxQueue, %d", s.PerShareQueue, r.MaxQueue)
	case s.MaxShares < 0 || s.MaxShares > MaxMaxShares:
		return spec.BadField("share.maxShares", "is %d: use a whole number from 0 to %d", s.MaxShares, MaxMaxShares)
	case len(s.Weights) > MaxWeights:
		return spec.BadField("share.weights", "has %d items, the maximum is %d: put tenants in groups with weightBy", len(s.Weights), MaxWeights)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Weights)) {
		switch w := s.Weights[name]; {
		case name == "" || len(name) > pattern.MaxName:
			return spec.BadField("share.weights", "names %.60q: use 1 to %d bytes", name, pattern.MaxName)
		case w < 1 || w > MaxWeight:
			return spec.BadField("share.weights", "gives %.60q %d: use a whole number from 1 to %d", name, w, MaxWeight)
		}
	}
	return cmp.Or(checkSource("share.by", s.By), checkSource("share.weightBy", s.WeightBy))
}

// checkSource refuses text that names neither an attachment nor the caller.
func checkSource(field, text string) error {
	name, param := strings.CutPrefix(text, paramPrefix)
	switch {
	case text == "" || text == origin:
		return nil
	case !param || name == "" || strings.TrimSpace(name) != name:
		return spec.BadField(field, `is %.60q: use "param" and the name of an attachment, as in "param tenant", or "origin"`, text)
	}
	return spec.CheckName(field, name)
}

const (
	paramPrefix = "param "
	origin      = "origin"
)
