package pattern

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Wildcards finds the patterns with stars that match a name, without looking at the others. There
// are two kinds:
//
//   - A prefix ends in its only star, and matches every name that begins with the text before
//     it: "GET /users/*" matches "GET /users/7/orders".
//   - A path is compared part by part between the slashes. A star stands for one part that isn't
//     empty: "GET /users/*/orders". If a space comes before the first slash, the text before the
//     space is a separate part: "* /users".
//
// The zero value has no patterns. Once all are added, it is safe for concurrent reading.
type Wildcards struct {
	list     []wildcard
	prefixes map[string]int // numbers, by the text before the star
	lengths  []int          // lengths of these texts, each once
	paths    [2]*branch     // without a part before a space, and with one
}

// wildcard is a pattern.
type wildcard struct {
	text string
	path bool
}

// letters returns the number of bytes that the pattern spells out.
func (w wildcard) letters() int { return len(w.text) - strings.Count(w.text, "*") }

// compare orders patterns that spell out more first.
func (w wildcard) compare(other wildcard) int {
	switch more := cmp.Compare(other.letters(), w.letters()); {
	case more != 0:
		return more
	case w.path != other.path && w.path:
		return -1
	case w.path != other.path:
		return 1
	}
	return cmp.Compare(w.text, other.text)
}

// branch holds all paths with a common beginning.
type branch struct {
	ends int // number of the path that ends here, or -1
	next map[string]*branch
	star *branch
}

func newBranch() *branch { return &branch{ends: -1, next: make(map[string]*branch)} }

// CheckPrefix returns an error if text is not a valid prefix.
func CheckPrefix(text string) error {
	before, found := strings.CutSuffix(text, "*")
	switch {
	case !found || strings.Contains(before, "*"):
		return errors.New(`must have its only star at the end, as in "GET /users/*"`)
	case before == "":
		return errors.New(`has nothing before the star: remove match to use "*" for every resource without a rule of its own`)
	}
	return checkLength(text)
}

// CheckPath returns an error if text is not a valid path.
func CheckPath(text string) error {
	method, path, _ := cutMethod(text)
	stars := 0
	check := func(part string) error {
		switch {
		case part == "*":
			stars++
		case strings.Contains(part, "*"):
			return fmt.Errorf(`has a star in %q, but a star stands for a whole part, as in "GET /users/*/orders"`, part)
		}
		return nil
	}
	if err := check(method); err != nil {
		return err
	}
	for part := range strings.SplitSeq(path, "/") {
		if err := check(part); err != nil {
			return err
		}
	}
	switch {
	case !strings.Contains(text, "/"):
		return errors.New(`has no slash: write a path such as "GET /users/*"`)
	case stars == 0:
		return errors.New("has no star: remove match to name a single resource")
	}
	return checkLength(text)
}

func checkLength(text string) error {
	if len(text) > MaxName {
		return fmt.Errorf("has %d bytes, and a name has at most %d", len(text), MaxName)
	}
	return nil
}

// cutMethod cuts off the text before a space, if the space comes before the first slash.
func cutMethod(text string) (method, path string, found bool) {
	i := strings.IndexByte(text, '/')
	if i < 1 || text[i-1] != ' ' {
		return "", text, false
	}
	return text[:i-1], text[i:], true
}

// Add returns the number of a pattern; equal patterns have the same number. The pattern must have
// passed [CheckPath] if path is true, otherwise [CheckPrefix].
func (w *Wildcards) Add(text string, path bool) (number int) {
	number = len(w.list)
	if path {
		end := w.endOf(text)
		if end.ends >= 0 {
			return end.ends
		}
		end.ends = number
	} else {
		before := text[:len(text)-1]
		if number, known := w.prefixes[before]; known {
			return number
		}
		if w.prefixes == nil {
			w.prefixes = make(map[string]int)
		}
		w.prefixes[before] = number
		if i, known := slices.BinarySearch(w.lengths, len(before)); !known {
			w.lengths = slices.Insert(w.lengths, i, len(before))
		}
	}
	w.list = append(w.list, wildcard{text, path})
	return number
}

// endOf returns the branch at which a path ends.
func (w *Wildcards) endOf(text string) *branch {
	method, path, found := cutMethod(text)
	root := &w.paths[0]
	if found {
		root = &w.paths[1]
	}
	if *root == nil {
		*root = newBranch()
	}
	b := *root
	if found {
		b = b.grow(method)
	}
	for part := range strings.SplitSeq(path, "/") {
		b = b.grow(part)
	}
	return b
}

// grow returns the branch for the next part of a path.
func (b *branch) grow(part string) *branch {
	if part == "*" {
		if b.star == nil {
			b.star = newBranch()
		}
		return b.star
	}
	if b.next[part] == nil {
		b.next[part] = newBranch()
	}
	return b.next[part]
}

// Match returns the numbers of the patterns that match a name; patterns that spell out more come
// first. Ties are broken by kind, paths before prefixes, and then by text.
func (w *Wildcards) Match(name string) (numbers []int) {
	for _, length := range w.lengths {
		if length > len(name) {
			break
		}
		if number, found := w.prefixes[name[:length]]; found {
			numbers = append(numbers, number)
		}
	}
	method, path, found := cutMethod(name)
	if found {
		numbers = w.paths[1].step(method, numbers, func(b *branch, numbers []int) []int { return b.match(path, numbers) })
	} else {
		numbers = w.paths[0].match(path, numbers)
	}
	slices.SortFunc(numbers, func(a, b int) int { return w.list[a].compare(w.list[b]) })
	return numbers
}

// match appends the numbers of the paths below b that match the remainder of a name.
func (b *branch) match(rest string, numbers []int) []int {
	part, rest, more := strings.Cut(rest, "/")
	return b.step(part, numbers, func(b *branch, numbers []int) []int {
		switch {
		case more:
			return b.match(rest, numbers)
		case b.ends >= 0:
			return append(numbers, b.ends)
		}
		return numbers
	})
}

// step calls then for each branch below b that matches a part of a name.
func (b *branch) step(part string, numbers []int, then func(*branch, []int) []int) []int {
	if b == nil {
		return numbers
	}
	if next := b.next[part]; next != nil {
		numbers = then(next, numbers)
	}
	if b.star != nil && part != "" {
		numbers = then(b.star, numbers)
	}
	return numbers
}
