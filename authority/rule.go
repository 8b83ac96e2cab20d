package authority

import (
	"cmp"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
)

// Rule lists callers of one resource. Resource and Origins are enough:
//
//	authority.Rule{Resource: "POST /refunds", Origins: []string{"back-office"}}
//
// lets in only back-office. If a resource has several rules, all must let a caller in.
type Rule struct {
	// ID names the rule in errors, logs and figures, and ties it to its
	// predecessor when rules are reloaded. Made from the fields if empty.
	ID string `yaml:"id,omitempty"`
	// Resource is the name given to api.Entry, or a pattern as Match says. Required. "*" means
	// every resource that no other enforced rule of the family is about.
	Resource string `yaml:"resource"`
	// Match says how Resource names resources. The zero value is api.MatchExact.
	// api.MatchPrefix matches all names that begin with what precedes the star at the end of
	// Resource, as in "GET /users/*". api.MatchPath compares the parts between slashes, where a
	// star matches any part, as in "GET /users/*/orders". A rule of these two kinds is about a name
	// only if no enforced rule of the family spells out more of it. api.MatchRegex is a regular
	// expression (RE2) that must match a whole name, where a dot matches every character; such a
	// rule is about all names that it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path is not about.
	Exclude []string `yaml:"exclude,omitempty"`
	// List is what Origins means. The zero value is Allow.
	List List `yaml:"list,omitempty"`
	// Origins are the callers that the rule names. Blanks around a name are dropped;
	// otherwise names are compared exactly. At least one.
	Origins []string `yaml:"origins"`
	// AllowAnonymous lets callers without an origin through an allow list, which
	// refuses them otherwise. A deny list can't name them and always lets them through.
	AllowAnonymous bool `yaml:"allowAnonymous,omitempty"`
	// Mode says whether the verdict holds. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// Normalized returns the rule with every default written out and its names trimmed,
// or the first field that can't be honoured as a [spec.FieldError].
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	switch {
	case r.Resource == "":
		return r, spec.BadField("resource", "is required: name the resource whose callers the rule lists")
	case !listNames.Has(r.List):
		return r, spec.BadField("list", "%d is unknown: use authority.Allow or authority.Deny", r.List)
	case r.AllowAnonymous && r.List == Deny:
		return r, spec.BadField("allowAnonymous", "has no meaning for a deny list, which lets callers without an origin through: remove it")
	case len(r.Origins) == 0 && r.List == Deny:
		return r, spec.BadField("origins", "is required: a deny list of nobody never refuses a call")
	case len(r.Origins) == 0:
		return r, spec.BadField("origins", "is required: an allow list of nobody lets no caller in; for that, use a flow rule with the threshold 0")
	}
	if err := r.Info().Check(); err != nil {
		return r, err
	}
	given := r.Origins
	r.Origins = make([]string, 0, len(given))
	seen := make(map[string]bool, len(given))
	for i, name := range given {
		switch name = strings.TrimSpace(name); {
		case name == "":
			return r, spec.BadField("origins", "has no name in place %d: callers without an origin are for allowAnonymous", i+1)
		case seen[name]:
			return r, spec.BadField("origins", "has %q twice: remove one", name)
		}
		if err := spec.CheckName("origins", name); err != nil {
			return r, err
		}
		seen[name] = true
		r.Origins = append(r.Origins, name)
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

// Info returns what the rule table needs to know.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode}
}

// Like names a rule by the fields that make it that rule, so that an edited list is
// still the same rule.
func (r Rule) Like() string {
	id := "authority:" + r.Resource
	if r.List == Deny {
		id += ":deny"
	}
	return id
}
