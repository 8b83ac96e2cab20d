package pattern

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Expression is a regular expression of rules, ready to match whole names. It is immutable.
type Expression struct {
	Text string
	Born uint64 // revision since which rules have continuously used it

	Shadow bool // used by rules in shadow mode; other rules have a separate Expression

	prefix  string         // every matching name begins with it
	pattern *regexp.Regexp // nil if the expression consists only of texts and gaps
	gaps    []gap          // these follow the prefix in that case
}

// gap matches a minimum number of arbitrary characters, followed by a text.
type gap struct {
	least int
	then  string
}

// Compile compiles an expression, which must have a [Size], for rules that have used it since
// revision born.
func Compile(text string, born uint64, shadow bool) (*Expression, error) {
	parsed, err := syntax.Parse(whole(text), syntax.Perl)
	if err != nil {
		return nil, err
	}
	x := &Expression{Text: text, Born: born, Shadow: shadow}
	if parts := sequence(nil, parsed); !x.plain(parts) {
		x.pattern, err = regexp.Compile(whole(text))
	}
	return x, err
}

// sequence appends the consecutive parts of an expression.
func sequence(parts []*syntax.Regexp, re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			parts = sequence(parts, sub)
		}
		return parts
	case syntax.OpCapture:
		return sequence(parts, re.Sub[0])
	case syntax.OpEmptyMatch:
		return parts
	}
	return append(parts, re)
}

// plain reads the parts as texts and gaps, and reports whether that is possible for all of them. If
// not, it still finds the prefix.
func (x *Expression) plain(parts []*syntax.Regexp) bool {
	for i, part := range parts {
		switch {
		case part.Op == syntax.OpBeginText && i == 0, part.Op == syntax.OpEndText && i == len(parts)-1:
		case part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && !slices.Contains(part.Rune, utf8.RuneError):
			*x.last() += string(part.Rune) // that rune would also match invalid bytes
		case part.Op == syntax.OpStar && part.Sub[0].Op == syntax.OpAnyChar:
			x.gap(0)
		case part.Op == syntax.OpPlus && part.Sub[0].Op == syntax.OpAnyChar:
			x.gap(1)
		default:
			return false
		}
	}
	return true
}

// last returns the text at the end of the parts read so far.
func (x *Expression) last() *string {
	if n := len(x.gaps); n > 0 {
		return &x.gaps[n-1].then
	}
	return &x.prefix
}

func (x *Expression) gap(least int) {
	if n := len(x.gaps); n > 0 && x.gaps[n-1].then == "" {
		x.gaps[n-1].least += least
		return
	}
	x.gaps = append(x.gaps, gap{least: least})
}

// match reports whether the expression matches the whole name.
func (x *Expression) match(name string) bool {
	rest, ok := strings.CutPrefix(name, x.prefix)
	switch {
	case !ok:
		return false
	case x.pattern != nil:
		return x.pattern.MatchString(name)
	case len(x.gaps) == 0:
		return rest == ""
	}
	for i, g := range x.gaps {
		for range g.least {
			if rest == "" {
				return false
			}
			_, size := utf8.DecodeRuneInString(rest)
			rest = rest[size:]
		}
		if i == len(x.gaps)-1 {
			return strings.HasSuffix(rest, g.then)
		}
		if _, rest, ok = strings.Cut(rest, g.then); !ok { // the first occurrence leaves the longest remainder
			return false
		}
	}
	return false
}

// Expressions are the expressions of a family's rules that are not off. They are immutable.
type Expressions struct {
	Revision uint64
	List     []*Expression         // each once, in the order of first use by a rule
	Rules    map[*Expression][]int // indexes of the rules that use it
}

// Matched holds the expressions that match a name, among the expressions of rules up to a revision.
// Expressions that later rules still use are not matched again.
type Matched struct {
	List     []*Expression
	Revision uint64
}

// Latest returns the revision that added the latest expression, or 0 if there is none.
func (x *Expressions) Latest() uint64 {
	if n := len(x.List); n > 0 {
		return x.List[n-1].Born
	}
	return 0
}

// Known returns the earlier matches of a name, limited to expressions that these rules also use.
func (x *Expressions) Known(before Matched) Matched {
	now := Matched{Revision: before.Revision}
	for _, e := range before.List {
		if x.Rules[e] != nil {
			now.List = append(now.List, e)
		}
	}
	return now
}

// Match returns the expressions that match a name, or all of them if the name stands for every
// name. before has the matches under older rules.
func (x *Expressions) Match(name string, every bool, before Matched) Matched {
	now := x.Known(before)
	now.Revision = x.Revision
	later, _ := slices.BinarySearchFunc(x.List, before.Revision+1, func(e *Expression, revision uint64) int {
		return cmp.Compare(e.Born, revision)
	})
	for _, e := range x.List[later:] {
		if every || e.match(name) {
			now.List = append(now.List, e)
		}
	}
	return now
}

// Has reports whether an expression matches the name of m.
func (m Matched) Has(e *Expression, name string) bool {
	if e.Born <= m.Revision {
		return slices.Contains(m.List, e)
	}
	return e.match(name)
}
