package pattern

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// MaxName is the maximum length in bytes of a call's resource, context and caller names. A call
// with a longer name is rejected with core.ErrInvalid, and a rule with one is not loaded: names are
// kept, shown, logged and matched against expressions, and may come from outside.
const MaxName = 1024

// Limits on the regular expressions of rules. A short expression can stand for a long one: a{1000}
// is a thousand letters. So the size is limited too: the number of steps with every repetition
// written out, but at least the number of bytes and the cost of parsing. Compiling takes about 500
// bytes of memory per step.
//
// A name is matched against an expression once. The steps that can be under way at one character of
// the name bound that cost; see patternWork.
const (
	maxLength = 1024   // bytes
	MaxSize   = 10_000 // steps of one expression
	MaxTotal  = 50_000 // steps of all expressions of a family, or of a file
	maxSteps  = 256    // steps of one expression under way at a time, averaged over the longest name
)

// Size returns the size of a regular expression, and an error if it can't be used. It doesn't
// compile it.
func Size(pattern string) (size int, err error) {
	if len(pattern) > maxLength {
		return 0, fmt.Errorf("the regular expression has %d bytes; the maximum is %d", len(pattern), maxLength)
	}
	size = max(len(pattern), classPrice(pattern))
	if size <= MaxSize {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err == nil && strings.Contains(pattern, `\Q`) { // \Q may be valid only at the end
			_, err = syntax.Parse(whole(pattern), syntax.Perl)
		}
		if bad, ok := errors.AsType[*syntax.Error](err); ok {
			return size, fmt.Errorf("is not a valid regular expression: %s: %q", bad.Code, bad.Expr)
		}
		size = max(size, steps(parsed))
		if size <= MaxSize {
			if work := patternWork(parsed); work > maxSteps*MaxName {
				return size, fmt.Errorf("the regular expression has %d steps under way at once on a name of %d bytes; "+
					"the maximum is %d: repeat less, or use fewer parts that match anything",
					work/MaxName, MaxName, maxSteps)
			}
		}
	}
	if size > MaxSize {
		return size, fmt.Errorf("the regular expression has %d steps when its repetitions are written out; "+
			"the maximum is %d: repeat less, or name fewer characters",
			size, MaxSize)
	}
	return size, nil
}

// whole makes an expression match whole names only. A dot matches a line break too: a name with a
// line break must not evade a rule for all names.
func whole(pattern string) string { return `^(?s:` + pattern + `)$` }

// steps returns the approximate number of instructions of the compiled expression. A class with
// many ranges counts as several. The parser bounds the depth, and the product of nested
// repetitions.
func steps(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/16
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + len(re.Sub) - 1
	case syntax.OpCapture:
		return n + 2
	case syntax.OpRepeat:
		// The copies are in sequence, and each beyond the minimum may be skipped.
		return n*max(re.Min, re.Max, 1) + max(re.Max-re.Min, 1)
	}
	return n + 1
}

// classPrice returns the maximum cost of parsing the character classes, in steps. The parser lists
// the hundreds of ranges of a Unicode class, and if case is ignored it goes through a range
// character by character, milliseconds for a large one. Both must be known before parsing. Anything
// that looks like a class or a range counts as one.
func classPrice(pattern string) int {
	price, folds := 100, ignoresCase(pattern)
	if folds {
		price = 200
	}
	price *= strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`)
	if !folds {
		return price
	}
	for i := range len(pattern) {
		if pattern[i] != '-' {
			continue
		}
		const perStep = 12 // characters
		low, _ := utf8.DecodeLastRuneInString(pattern[:i])
		high, _ := utf8.DecodeRuneInString(pattern[i+1:])
		switch {
		case high == '\\': // any character
			price += MaxSize / 2
		case high > low:
			price += int(min(high, 0x20000)-min(low, 0x20000)) / perStep // letters beyond that have no case
		}
	}
	return price
}

// ignoresCase reports whether a group sets the flag i.
func ignoresCase(pattern string) bool {
	for {
		_, flags, found := strings.Cut(pattern, "(?")
		if !found {
			return false
		}
		pattern = flags
		end := strings.IndexFunc(flags, func(r rune) bool { return (r < 'a' || r > 'z') && r != 'U' && r != '-' })
		if end >= 0 {
			flags = flags[:end]
		}
		if strings.Contains(flags, "i") {
			return true
		}
	}
}
