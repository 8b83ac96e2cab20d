package pattern

import "regexp/syntax"

// patternWork returns an upper bound on the steps of matching an expression against any name of
// [MaxName] bytes. A matcher that does not backtrack, such as Go's, takes each step of the
// expression at most once at each position in the name. So the cost of a step is the number of
// positions where it can be taken: the preceding parts of the expression determine how many
// characters can come before it, and every character is assumed to match every part that matches a
// single character.
func patternWork(re *syntax.Regexp) int {
	n, _ := work(re, reach{})
	return n
}

// reach is a range from low to high: of the length of a part in characters, or of the position
// where it begins.
type reach struct{ low, high int }

// then returns the length of two consecutive parts.
func (r reach) then(next reach) reach {
	return reach{r.low + next.low, min(r.high+next.high, MaxName)}
}

// places returns the number of positions where a part can begin.
func (r reach) places() int { return max(0, r.high-r.low+1) }

// work returns the number of steps of matching an expression that begins at these positions, and
// its length in characters. Steps are counted as by [steps].
func work(re *syntax.Regexp, at reach) (n int, long reach) {
	here := at.places()
	if here == 0 {
		return 0, reach{} // beyond the longest name
	}
	switch re.Op {
	case syntax.OpLiteral:
		letters := len(re.Rune)
		for range letters {
			n += at.places()
			at = at.then(reach{1, 1})
		}
		return n, reach{letters, letters}
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return here, reach{1, 1}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			more, l := work(sub, at.then(long))
			n, long = n+more, long.then(l)
		}
		return n, long
	case syntax.OpAlternate:
		long = reach{low: MaxName}
		for _, sub := range re.Sub {
			more, l := work(sub, at)
			n += here + more
			long = reach{min(long.low, l.low), max(long.high, l.high)}
		}
		return n, long
	case syntax.OpCapture:
		n, long = work(re.Sub[0], at)
		return n + here + at.then(long).places(), long
	case syntax.OpStar:
		return workOfRepeated(re.Sub[0], at, 0, -1)
	case syntax.OpPlus:
		return workOfRepeated(re.Sub[0], at, 1, -1)
	case syntax.OpQuest:
		return workOfRepeated(re.Sub[0], at, 0, 1)
	case syntax.OpRepeat:
		return workOfRepeated(re.Sub[0], at, re.Min, re.Max)
	}
	return here, reach{}
}

// workOfRepeated is like work, but for an expression repeated least to most times; most is -1 if
// there is no upper bound. An unbounded repetition is written once, and loops back to its
// beginning.
func workOfRepeated(re *syntax.Regexp, at reach, least, most int) (n int, long reach) {
	copies, endless := most, most < 0
	if endless {
		copies = max(least, 1)
	}
	for i := range copies {
		again := endless && i == copies-1
		if again {
			at.high = MaxName
		}
		if again || i >= least {
			n += at.places() // present or absent
		}
		more, l := work(re, at)
		n += more
		if again && l.low == 0 {
			n += at.places() // it can be empty: presence is one step, and repetition another
		}
		at = at.then(l)
		if i < least {
			long.low += l.low
		}
		long.high += l.high
	}
	if endless {
		long.high = MaxName
	}
	return n, long
}
