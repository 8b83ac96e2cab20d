package lint

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// duplicates finds rules that differ only in their ID.
func (l *linter) duplicates() {
	for _, x := range l.lists {
		for _, group := range groups(x.infos) {
			first := make(map[string]int)
			for _, i := range group {
				says := x.says(i)
				j, met := first[says]
				if !met {
					first[says] = i
					continue
				}
				l.add("PN007", Warning, x.family, i, "id", "the rule is the same as %s except for its id, so one of the two has no effect: remove one", l.at(x.family, j))
			}
		}
	}
}

// patterns finds rules that can't be reached because of how rules name resources.
func (l *linter) patterns() {
	for _, x := range l.lists {
		all := slices.IndexFunc(x.infos, func(info spec.Info) bool {
			return info.Match == spec.MatchRegex && info.Mode == spec.Enforce && !info.Together && matchesAll(info.Resource)
		})
		for i, info := range x.infos {
			switch {
			case info.Mode == spec.Off:
			case info.Default() && !info.Together && all >= 0:
				l.add("PN013", Warning, x.family, i, "resource", `the rule never applies: "*" covers names without a rule of their own, and %s covers every name; merge the two, or restrict that one`, l.at(x.family, all))
			case info.Named() && looksLikeExpression(info.Resource):
				l.add("PN014", Warning, x.family, i, "resource", "%q looks like a regular expression and is read as the name of one resource: add `match: regex`", info.Resource)
			case info.Named() && hasTwoStars(info.Resource):
				l.add("PN014", Warning, x.family, i, "resource", "%q looks like a pattern and is read as the name of one resource: %s", info.Resource, withoutTwoStars(info.Resource))
			}
			covered := covers(info)
			for j, name := range info.Exclude {
				switch {
				case info.Mode == spec.Off:
				case hasTwoStars(name):
					l.add("PN014", Warning, x.family, i, "exclude", "%q looks like a pattern and is read as the name of one resource: list the names, or write a separate rule with match", name)
				case !covered(name):
					l.add("PN012", Warning, x.family, i, "exclude", "%q is excluded, and %q doesn't match it anyway: correct the name, or remove it", name, info.Resource)
				case slices.Contains(info.Exclude[:j], name):
					l.add("PN012", Notice, x.family, i, "exclude", "%q is excluded twice: remove one", name)
				}
			}
		}
	}
}

// groupPaths finds patterns that a gateway's group reads as one path.
func (l *linter) groupPaths() {
	for i, g := range l.set.Groups {
		for _, p := range g.Paths {
			if p.Match == spec.MatchExact && hasTwoStars(p.Path) {
				l.add("PN014", Warning, "groups", i, "paths", "%q looks like a pattern and is read as one path: %s", p.Path, withoutTwoStars(p.Path))
			}
		}
	}
}

// refs finds patterns that flow rules read as the name of a single resource or context.
func (l *linter) refs() {
	for i, r := range l.set.Flow {
		if r.Mode != spec.Off && (hasTwoStars(r.Ref) || looksLikeExpression(r.Ref)) {
			what := "resource"
			if r.Relation == flow.Chain {
				what = "context"
			}
			l.add("PN014", Warning, "flow", i, "ref", "%q looks like a pattern and is read as the name of one %s: write the full name", r.Ref, what)
		}
	}
}

// hasTwoStars reports whether a name has the wildcard that stands for any number of parts in Spring,
// Ant and shells.
func hasTwoStars(name string) bool { return strings.Contains(name, "**") }

// withoutTwoStars returns advice on how to write a pattern with that wildcard here.
func withoutTwoStars(name string) string {
	if base, ok := strings.CutSuffix(name, "**"); ok && !strings.Contains(base, "*") && base != "" {
		return fmt.Sprintf("write %q with `match: prefix`", base+"*")
	}
	return "write a star for each part, with `match: path`, or an expression, with `match: regex`"
}

// matchesAll reports whether an expression matches every name that is not empty.
func matchesAll(text string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	for err == nil && parsed.Op == syntax.OpCapture {
		parsed = parsed.Sub[0]
	}
	return err == nil && (parsed.Op == syntax.OpStar || parsed.Op == syntax.OpPlus) &&
		(parsed.Sub[0].Op == syntax.OpAnyChar || parsed.Sub[0].Op == syntax.OpAnyCharNotNL)
}

// looksLikeExpression reports whether a name has text that is rare in names and common in
// expressions.
func looksLikeExpression(name string) bool {
	return strings.Contains(name, ".*") || strings.Contains(name, ".+") || strings.Contains(name, `\d`) || strings.Contains(name, `\w`) ||
		strings.HasPrefix(name, "^") || strings.HasSuffix(name, "$") && strings.ContainsAny(name, "*+([")
}

// unseen finds rules for calls that a guard has never seen.
func (l *linter) unseen() {
	seen := l.opts.Seen
	if seen == nil {
		return
	}
	for _, x := range l.lists {
		for i, info := range x.infos {
			if info.Mode != spec.Off && info.Together && info.Default() && !seen.Inbound {
				l.add("PN005", Warning, x.family, i, "together", `no call is inbound, and with together "*" counts only inbound calls: mark calls from outside with api.Inbound(), or count all with resource ".*" and match: regex`)
			}
			if info.Mode == spec.Off || info.Default() {
				continue
			}
			if info.Named() && slices.Contains(seen.Resources, info.Resource) || !info.Named() && slices.ContainsFunc(seen.Resources, covers(info)) {
				continue
			}
			switch name := nearest(info.Resource, seen.Resources); {
			case info.Named() && strings.Contains(info.Resource, "*") && slices.ContainsFunc(seen.Resources, covers(asPattern(info))):
				l.add("PN001", Warning, x.family, i, "resource", "no call has asked for a resource named %q, but as a pattern it would match names that calls used: add `match: prefix` or `match: path`", info.Resource)
			case info.Named() && name != "":
				l.add("PN001", Warning, x.family, i, "resource", "no call has asked for %q, but some for %q: is the name right?", info.Resource, name)
			default:
				l.add("PN001", Warning, x.family, i, "resource", "no call has asked for %q yet: is the name right?", info.Resource)
			}
		}
	}
}

// asPattern returns the pattern that a name with a star might be meant as.
func asPattern(info spec.Info) spec.Info {
	info.Match = spec.MatchPath
	if strings.HasSuffix(info.Resource, "*") && strings.Count(info.Resource, "*") == 1 {
		info.Match = spec.MatchPrefix
	}
	if info.Check() != nil {
		info.Match = spec.MatchExact
	}
	return info
}

// nearest returns the name that differs only in capitals, blanks, slashes or dashes, or "".
func nearest(name string, names []string) string {
	plain := strings.NewReplacer(" ", "", "/", "", "-", "", "_", "", ".", "").Replace
	want := strings.ToLower(plain(name))
	for _, n := range names {
		if strings.ToLower(plain(n)) == want {
			return n
		}
	}
	return ""
}
