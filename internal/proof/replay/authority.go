package replay

import (
	"slices"
	"strings"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/internal/sentinel"
)

// JavaAuthorityRule is an authority rule of Java Sentinel.
type JavaAuthorityRule struct {
	ID       string `json:"id"`
	Resource string `json:"resource"`
	LimitApp string `json:"limitApp"` // origins separated by commas
	Strategy string `json:"strategy"` // white (default) or black
}

// TranslateAuthority returns native rules that behave like the Java ones, in their order: callers
// without an origin pass. later are the IDs of rules that Java drops, since it keeps only the first
// of a resource, and we do not.
func TranslateAuthority(rules []JavaAuthorityRule) (native []authority.Rule, later []string, dropped []Dropped) {
	seen := make(map[string]bool)
	for _, r := range rules {
		rule := r.java()
		if err := rule.Check(); err != nil {
			dropped = append(dropped, Dropped{r.ID, true, err.Error()})
			continue
		}
		if seen[r.Resource] {
			later = append(later, r.ID)
		}
		seen[r.Resource] = true
		n, _, err := rule.Native()
		if err == nil {
			n[0], err = n[0].Normalized()
		}
		if err != nil {
			dropped = append(dropped, Dropped{r.ID, false, err.Error()})
		} else {
			native = append(native, n...)
		}
	}
	return native, later, dropped
}

// java returns the rule in the form of Java's rule files.
func (r JavaAuthorityRule) java() sentinel.JavaAuthority {
	return sentinel.JavaAuthority{
		ID: sentinel.ID(r.ID), Resource: r.Resource, LimitApp: r.LimitApp, Strategy: number([]string{"white", "black"}, r.Strategy, 0),
	}
}

// origins returns the names as Java reads them, blanks included.
func (r JavaAuthorityRule) origins() []string { return r.java().Callers() }

// lists holds the runner's knowledge of the authority rules.
type lists struct {
	java  []JavaAuthorityRule
	later []string // rules that Java has dropped
}

// otherLists: Java compares names including the blanks around them, and keeps only the first rule
// of a resource.
func otherLists(m *moment) bool {
	if m.got.blockedBy != "authority" && m.want.BlockedBy != "authority" {
		return false
	}
	if slices.Contains(m.lists.later, m.got.rule) {
		return true
	}
	return slices.ContainsFunc(m.lists.java, func(r JavaAuthorityRule) bool {
		named := slices.Contains(r.origins(), m.call.origin)
		trimmed := slices.ContainsFunc(r.origins(), func(name string) bool { return strings.TrimSpace(name) == m.call.origin })
		return (r.ID == m.got.rule || r.ID == m.want.Rule) && named != trimmed
	})
}
