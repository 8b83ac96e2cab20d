package spec

import "github.com/penstock-go/penstock/core/pattern"

// Check returns what no rule about a resource may have, whatever its family, as a
// [FieldError]: no resource, one that no call can have, an expression that is none, a match or
// a mode that there isn't.
func (i Info) Check() error {
	if i.Resource == "" {
		return BadField("resource", "is required: name the resource that the rule limits")
	}
	switch i.Match {
	case MatchExact:
		if err := CheckName("resource", i.Resource); err != nil {
			return err
		}
	case MatchRegex:
		if _, err := pattern.Size(i.Resource); err != nil {
			return BadField("resource", "%v", err)
		}
	default:
		return BadField("match", "%d is unknown: use api.MatchExact or api.MatchRegex", i.Match)
	}
	if i.Mode > Off {
		return BadField("mode", "%d is unknown: use api.Enforce, api.Shadow or api.Off", i.Mode)
	}
	return nil
}
