// Package lint finds rules that load but can't do what their author thinks: a limit that never
// takes effect because of a stricter one, a queue without room for any call, a breaker that never opens
// because of the limit before it.
//
// [Check] checks a rule file, or a set of rules. Every finding has a code; docs/lint.md explains
// under that code what it means, when to leave things as they are, and what to do otherwise. With
// the data that a guard has [Seen], it also finds rules for calls that never come.
//
// A finding is not an error: the rules are in force as written.
package lint

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
)

// Severity is the likelihood that a finding is a mistake. The zero value is [Warning].
type Severity uint8

// The severities, the worst first.
const (
	Warning Severity = iota // the rule has an effect that never occurs
	Notice                  // the effect occurs, but surprises many
)

var severityNames = shown.NewEnum[Severity]("severity", "warning", "notice")

// String returns the severity's name.
func (s Severity) String() string { return severityNames.Name(s) }

// MarshalText writes the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return severityNames.Marshal(s) }

// UnmarshalText reads the severity's name.
func (s *Severity) UnmarshalText(text []byte) error { return severityNames.Parse(text, s) }

// Finding is a fact about a rule that its author may not know.
type Finding struct {
	Code     string // of a section in docs/lint.md, as in "PN001"
	Severity Severity
	Family   string // the key of the rule's family, as in "flow"
	Rule     int    // the rule's index in the family, starting at 0
	// Place is its position; the Problem describes the finding and what to do about it.
	Place rules.FileError
}

// String returns file:line:column: path: problem (code).
func (f Finding) String() string { return fmt.Sprintf("%v (%s)", &f.Place, f.Code) }

// Options hold knowledge in addition to the rules. The zero value assumes nothing.
type Options struct {
	// CallerTimeout is the time that callers wait for a response. 0 means unknown.
	CallerTimeout time.Duration
	// Seen is the traffic that a guard has seen since it loaded the rules. nil means unknown.
	Seen *Seen
	// ColdFactor is the engine's; see api.Config. 0 means 3, as there.
	ColdFactor int
}

// Seen is the traffic that a guard has seen. Anything not in it counts as never seen, so record it
// after some traffic.
type Seen struct {
	Resources []string         // that calls asked for
	Contexts  []string         // that calls used
	Inbound   bool             // a call was inbound
	Rules     []core.RuleStats // the stats of each rule
}

// Check checks the rules of a file, and returns the findings: the worst first, and otherwise in the
// order of the file.
func Check(p rules.Parsed, opts Options) []Finding {
	return check(p.Set, p.Place, false, opts)
}

// CheckFiles is like [Check], but for files whose rules are in force together, such as those of a
// directory: it also compares rules of different files. [Finding].Rule is an index across all files,
// and Place is in the file that has the rule.
func CheckFiles(files []rules.Parsed, opts Options) []Finding {
	if len(files) == 1 {
		return Check(files[0], opts)
	}
	var set rules.Set
	begins := make(map[string][]int) // of each file, by family: how many rules come before
	all := reflect.ValueOf(&set).Elem()
	for _, p := range files {
		for f, list := range reflect.ValueOf(p.Set).Fields() {
			family, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			to := all.FieldByIndex(f.Index)
			begins[family] = append(begins[family], to.Len())
			to.Set(reflect.AppendSlice(to, list))
		}
	}
	return check(set, func(family string, i int, field string) rules.FileError {
		file := 0
		for file+1 < len(files) && begins[family][file+1] <= i {
			file++
		}
		return files[file].Place(family, i-begins[family][file], field)
	}, true, opts)
}

// CheckSet is like [Check], but for rules that don't come from a file: their places are positions in
// their families.
func CheckSet(set rules.Set, opts Options) []Finding {
	return check(set, rules.Parsed{}.Place, false, opts)
}

func check(set rules.Set, place func(family string, i int, field string) rules.FileError, several bool, opts Options) []Finding {
	l := &linter{opts: opts, place: place, several: several, set: set}
	l.opts.ColdFactor = cmp.Or(opts.ColdFactor, 3)
	l.read()
	for _, look := range looks {
		look(l)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column),
			cmp.Compare(a.Code, b.Code))
	})
	return l.found
}

// looks lists the checks.
var looks = []func(*linter){
	(*linter).duplicates, (*linter).shadowed, (*linter).patterns, (*linter).groupPaths, (*linter).refs, (*linter).hosts, (*linter).units, (*linter).unseen,
	(*linter).flows, (*linter).hotspots, (*linter).systems, (*linter).isolations, (*linter).breakers, (*linter).upstreams, (*linter).clusters, (*linter).levels,
}

// linter is one run over the rules.
type linter struct {
	opts    Options
	place   func(family string, i int, field string) rules.FileError
	several bool      // files
	set     rules.Set // with defaults filled in for valid rules
	lists   []list    // of the families whose rules name resources
	found   []Finding
}

// add adds a finding about a field of a rule, or about the rule if field is "".
func (l *linter) add(code string, s Severity, family string, rule int, field, format string, args ...any) {
	at := l.place(family, rule, field)
	at.Problem = fmt.Sprintf(format, args...)
	l.found = append(l.found, Finding{code, s, family, rule, at})
}

// at refers to another rule in a message: by its position in the file or, without a file, in its
// family.
func (l *linter) at(family string, rule int) string {
	at := l.place(family, rule, "")
	if at.Line == 0 {
		return at.Path
	}
	if l.several {
		return fmt.Sprintf("%s at %s:%d:%d", at.Path, at.File, at.Line, at.Column)
	}
	return fmt.Sprintf("%s at %d:%d", at.Path, at.Line, at.Column)
}

// worst is the number of findings that Log writes one by one.
const worst = 5

// Log writes the worst warnings, a line each, and the number of further ones. It leaves out notices.
func Log(log *slog.Logger, found []Finding) {
	found = slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Severity != Warning })
	for _, f := range found[:min(len(found), worst)] {
		log.Warn("penstock: a rule may not work as intended; see docs/lint.md", "code", f.Code, "at", f.Place.Error())
	}
	if more := len(found) - worst; more > 0 {
		log.Warn("penstock: more rules may not work as intended; penstock check lists all", "rules", more)
	}
}
