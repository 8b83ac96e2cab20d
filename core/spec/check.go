package spec

import "github.com/penstock-go/penstock/core/pattern"

// Check returns a [FieldError] if a rule's common fields are invalid: no resource, a name that no
// call can have, an invalid expression, an unknown match or mode.
func (i Info) Check() error {
	if i.Resource == "" {
		return BadField("resource", "is required: name the resource that the rule limits")
	}
	if err := i.checkMatch(); err != nil {
		return err
	}
	if err := i.checkExclude(); err != nil {
		return err
	}
	if i.Together && i.Named() {
		return BadField("together", "has no meaning for a rule of one resource: remove it, or set match to prefix, path or regex")
	}
	if i.Mode > Off {
		return BadField("mode", "%d is unknown: use api.Enforce, api.Shadow or api.Off", i.Mode)
	}
	return i.Refusal.Check()
}

func (i Info) checkMatch() error {
	var err error
	switch {
	case i.Match > MatchPath:
		return BadField("match", "%d is unknown: use api.MatchExact, api.MatchRegex, api.MatchPrefix or api.MatchPath", i.Match)
	case i.Match == MatchExact:
		return CheckName("resource", i.Resource)
	case i.Resource == AnyResource:
		return BadField("match", `is %v, but resource "*" stands for every resource without a rule of its own: remove it`, i.Match)
	case i.Match == MatchRegex:
		_, err = pattern.Size(i.Resource)
	case i.Match == MatchPrefix:
		err = pattern.CheckPrefix(i.Resource)
	case i.Match == MatchPath:
		err = pattern.CheckPath(i.Resource)
	}
	if err != nil {
		return BadField("resource", "%v", err)
	}
	return nil
}

func (i Info) checkExclude() error {
	switch {
	case len(i.Exclude) == 0:
		return nil
	case !i.Wild() && !i.Default():
		return BadField("exclude", `only goes with resource "*", a prefix or a path: remove it`)
	}
	for _, name := range i.Exclude {
		if name == "" {
			return BadField("exclude", "lists an empty name: remove it")
		}
		if err := CheckName("exclude", name); err != nil {
			return err
		}
	}
	return nil
}
