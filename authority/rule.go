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
// admits only back-office. If a resource has several rules, all must admit a caller.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Resource is the name passed to api.Entry, or a pattern; see Match. Required. "*" applies
	// to every resource that no other enforced authority rule applies to.
	Resource string `yaml:"resource"`
	// Match determines how Resource names resources. The zero value is api.MatchExact. api.MatchPrefix
	// matches all names that begin with the text before the star at the end of Resource, as in "GET
	// /users/*". api.MatchPath compares the parts between slashes, where a star matches any part,
	// as in "GET /users/*/orders". A rule of these two kinds applies to a name only if no enforced
	// authority rule matches it more specifically. api.MatchRegex is a regular expression (RE2)
	// that must match the whole name, where a dot matches every character; it applies to every name
	// that it matches.
	Match spec.Match `yaml:"match,omitempty"`
	// Exclude lists names that "*", a prefix or a path does not apply to.
	Exclude []string `yaml:"exclude,omitempty"`
	// List determines whether Origins are admitted or refused. The zero value is Allow.
	List List `yaml:"list,omitempty"`
	// Origins lists the callers. Blanks around a name are dropped; otherwise names are compared
	// exactly. At least one.
	Origins []string `yaml:"origins"`
	// AllowAnonymous admits callers without an origin under an allow list, which refuses them
	// otherwise. A deny list can't name them and always admits them.
	AllowAnonymous bool `yaml:"allowAnonymous,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// Normalized returns the rule with every default filled in and its names trimmed. It returns a
// [spec.FieldError] for the first invalid field.
func (r Rule) Normalized() (Rule, error) {
	r.Exclude = spec.Names(r.Exclude)
	switch {
	case r.Resource == "":
		return r, spec.BadField("resource", "is required: name the resource that the callers may, or may not, call")
	case !listNames.Has(r.List):
		return r, spec.BadField("list", "%d is unknown: use authority.Allow or authority.Deny", r.List)
	case r.AllowAnonymous && r.List == Deny:
		return r, spec.BadField("allowAnonymous", "has no meaning for a deny list, which always admits callers without an origin: remove it")
	case len(r.Origins) == 0 && r.List == Deny:
		return r, spec.BadField("origins", "is required: an empty deny list never refuses a call")
	case len(r.Origins) == 0:
		return r, spec.BadField("origins", "is required: an empty allow list admits no caller; to block every call, use a flow rule with threshold 0")
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
			return r, spec.BadField("origins", "entry %d is empty: to admit callers without an origin, set allowAnonymous", i+1)
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

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode, Refusal: r.Refusal}
}

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited list
// is still the same.
func (r Rule) Like() string {
	id := "authority:" + r.Resource
	if r.List == Deny {
		id += ":deny"
	}
	return id
}
