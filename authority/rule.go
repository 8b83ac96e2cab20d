package authority

import (
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// Rule lists callers of one resource. Resource and Origins are enough:
//
//	authority.Rule{Resource: "POST /refunds", Origins: []string{"back-office"}}
//
// lets nobody in but back-office. Of several rules on a resource all must let a caller
// in.
type Rule struct {
	// ID names the rule in errors, logs and figures, and ties it to its
	// predecessor when rules are loaded anew. Made from the fields if empty.
	ID string `yaml:"id,omitempty"`
	// Resource is the name given to api.Entry. Required.
	Resource string `yaml:"resource"`
	// Regex makes Resource a regular expression (RE2) that must match a whole
	// name; a dot matches every character.
	Regex bool `yaml:"regex,omitempty"`
	// List is what Origins means. The zero value is White.
	List List `yaml:"list,omitempty"`
	// Origins are the callers that the rule names. Blanks around a name are dropped;
	// otherwise names are compared as they are. At least one.
	Origins []string `yaml:"origins"`
	// AllowAnonymous lets callers without an origin through a white list, which
	// refuses them otherwise. A black list can't name them and always lets them through.
	AllowAnonymous bool `yaml:"allowAnonymous,omitempty"`
	// Mode says whether the verdict holds. The zero value is core.Enforce.
	Mode core.Mode `yaml:"mode,omitempty"`
}

// Normalized returns the rule with every default written out and its names trimmed,
// or the first field that can't be honoured as a [core.FieldError].
func (r Rule) Normalized() (Rule, error) {
	switch {
	case r.Resource == "":
		return r, core.BadField("resource", "is required: name the resource whose callers the rule lists")
	case int(r.List) >= len(listNames):
		return r, core.BadField("list", "%d is unknown: use authority.White or authority.Black", r.List)
	case r.Mode > core.Off:
		return r, core.BadField("mode", "%d is unknown: use core.Enforce, core.Shadow or core.Off", r.Mode)
	case r.AllowAnonymous && r.List == Black:
		return r, core.BadField("allowAnonymous", "has no meaning for a black list, which lets callers without an origin through: remove it")
	case len(r.Origins) == 0 && r.List == Black:
		return r, core.BadField("origins", "is required: a black list of nobody never refuses a call")
	case len(r.Origins) == 0:
		return r, core.BadField("origins", "is required: a white list of nobody lets no caller in; for that, use a flow rule with the threshold 0")
	}
	if r.Regex {
		if _, err := core.PatternSize(r.Resource); err != nil {
			return r, core.BadField("resource", "%v", err)
		}
	}
	given := r.Origins
	r.Origins = make([]string, 0, len(given))
	seen := make(map[string]bool, len(given))
	for i, name := range given {
		switch name = strings.TrimSpace(name); {
		case name == "":
			return r, core.BadField("origins", "has no name in place %d: callers without an origin are for allowAnonymous", i+1)
		case seen[name]:
			return r, core.BadField("origins", "has %q twice: remove one", name)
		}
		seen[name] = true
		r.Origins = append(r.Origins, name)
	}
	if r.ID == "" {
		r.ID = r.madeID()
	}
	return r, nil
}

// Info tells the rule table what it needs to know.
func (r Rule) Info() core.RuleInfo {
	return core.RuleInfo{ID: r.ID, Resource: r.Resource, Regex: r.Regex, Mode: r.Mode}
}

// WithID returns the rule with another ID.
func (r Rule) WithID(id string) Rule {
	r.ID = id
	return r
}

// Like names what makes the rule that rule, whatever its ID.
func (r Rule) Like() string { return r.madeID() }

// Equal reports whether two rules are the same in every field.
func (r Rule) Equal(other Rule) bool {
	return r.ID == other.ID && r.Resource == other.Resource && r.Regex == other.Regex && r.List == other.List &&
		slices.Equal(r.Origins, other.Origins) && r.AllowAnonymous == other.AllowAnonymous && r.Mode == other.Mode
}

// madeID names a rule by the fields that make it that rule, so that an edited list is
// still the same rule.
func (r Rule) madeID() string {
	id := "authority:" + r.Resource
	if r.List == Black {
		id += ":black"
	}
	return id
}
