package gateway

import (
	"strings"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
)

// Group is a set of paths that are limited together, as a resource of that name in addition to
// their routes:
//
//	gateway.Group{ID: "shop", Paths: []gateway.Path{{Path: "/orders"}, {Path: "/orders/*", Match: api.MatchPrefix}}}
//
// A request belongs to every group that contains its path.
type Group struct {
	// ID is the name of the group, and of the resource. Required.
	ID string `yaml:"id,omitempty"`
	// Paths are the paths of the group. At least one.
	Paths []Path `yaml:"paths"`
}

// Path is one path, or a pattern; see Match.
type Path struct {
	// Path begins with a slash, unless it is an expression. Required.
	Path string `yaml:"path"`
	// Match selects how Path is read. The zero value is api.MatchExact. api.MatchPrefix matches all
	// paths that begin with the text before the star at the end of Path. api.MatchPath compares the
	// parts between slashes, where a star matches any part. api.MatchRegex is a regular expression
	// (RE2) that must match the whole path.
	Match spec.Match `yaml:"match,omitempty"`
}

// MaxPaths is the maximum number of paths in a group.
const MaxPaths = 1000

// Normalized returns the group. It returns a [spec.FieldError] for the first invalid field.
func (g Group) Normalized() (Group, error) {
	if g.ID == "" {
		return g, spec.BadField("id", "is required: rules refer to the group by it")
	}
	if err := spec.CheckName("id", g.ID); err != nil {
		return g, err
	}
	switch {
	case len(g.Paths) == 0:
		return g, spec.BadField("paths", "is required: a group without paths has no requests")
	case len(g.Paths) > MaxPaths:
		return g, spec.BadField("paths", "has %d entries: a group can have at most %d", len(g.Paths), MaxPaths)
	}
	for _, p := range g.Paths {
		if p.Match != spec.MatchRegex && !strings.HasPrefix(p.Path, "/") {
			return g, spec.BadField("paths", "has %q: a path begins with a slash", p.Path)
		}
		if err := (spec.Info{Resource: p.Path, Match: p.Match}).Check(); err != nil {
			return g, spec.BadField("paths", "has %q, which is invalid: %v", p.Path, err)
		}
	}
	return g, nil
}

// Info returns the group's data for rule files.
func (g Group) Info() spec.Info { return spec.Info{ID: g.ID, Resource: g.ID} }

// Like is the name: a group with another name is another group.
func (g Group) Like() string { return g.ID }

// size returns the cost of its expressions.
func (g Group) size() (steps int) {
	for _, p := range g.Paths {
		if p.Match == spec.MatchRegex {
			more, _ := pattern.Size(p.Path)
			steps += more
		}
	}
	return steps
}
