package core

// Check returns what no rule about a resource may have, whatever its family, as a
// [FieldError]: no resource, an expression that is none, a mode that there isn't.
func (i RuleInfo) Check() error {
	if i.Resource == "" {
		return BadField("resource", "is required: name the resource that the rule limits")
	}
	if i.Regex {
		if _, err := PatternSize(i.Resource); err != nil {
			return BadField("resource", "%v", err)
		}
	}
	if i.Mode > Off {
		return BadField("mode", "%d is unknown: use core.Enforce, core.Shadow or core.Off", i.Mode)
	}
	return nil
}
