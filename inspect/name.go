package inspect

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown returns a name as text that stays on one line and within so many columns
// of a terminal. What can't be printed is written as an escape, as in Go, and a
// longer name ends with "…".
func shown(name string, width int) string {
	var out strings.Builder
	used, cut := 0, 0 // cut is how much is left when the name is too long
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		piece := name[:size]
		name = name[size:]
		invalid := r == utf8.RuneError && size == 1
		if !unicode.IsPrint(r) || invalid || r == '\\' {
			quoted := strconv.Quote(piece)
			piece = quoted[1 : len(quoted)-1]
		}
		used += columns(piece)
		if used > width {
			return out.String()[:cut] + "…"
		}
		out.WriteString(piece)
		if used < width {
			cut = out.Len()
		}
	}
	return out.String()
}

// columns is how wide a terminal shows printable text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n++
		if wide(r) {
			n++
		}
	}
	return n
}

// wide reports whether a terminal gives a letter two columns: those of East Asia.
func wide(r rune) bool {
	fullwidth := r >= 0xFF01 && r <= 0xFF60 || r >= 0x3001 && r <= 0x303E
	return fullwidth || unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}
