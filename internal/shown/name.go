// Package shown formats names that may come from outside, for trees and logs. A formatted name
// stays on one line, controls no terminal and has a bounded length, regardless of its content.
// [Enum] maps the values of a type to their names in files and JSON.
package shown

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name returns a name as text within width columns of a terminal. Unprintable characters are
// escaped, as in Go, and a longer name ends with "…".
func Name(name string, width int) string { return string(Append(nil, name, width)) }

// Append appends the result of [Name].
func Append(to []byte, name string, width int) []byte {
	used, cut := 0, len(to) // cut is the length to keep if the name is too long
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		piece := len(to)
		if invalid := r == utf8.RuneError && size == 1; !unicode.IsPrint(r) || invalid || r == '\\' {
			to = strconv.AppendQuote(to, name[:size])
			to = append(to[:piece], to[piece+1:len(to)-1]...)
		} else {
			to = append(to, name[:size]...)
		}
		name = name[size:]
		used += Columns(to[piece:])
		if used > width {
			return append(to[:cut], "…"...)
		}
		if used < width {
			cut = len(to)
		}
	}
	return to
}

// Escaped returns a name that isn't UTF-8 escaped as in a URL, and "" for any other name: JSON
// replaces invalid bytes with U+FFFD, and shows other names unchanged.
func Escaped(name string) string {
	if utf8.ValidString(name) {
		return ""
	}
	return strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// Columns returns the width of printable text in a terminal.
func Columns(text []byte) int {
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		n++
		if wide(r) {
			n++
		}
	}
	return n
}

// wide reports whether a terminal shows a letter in two columns, as it does for East Asian scripts.
func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	fullwidth := r >= 0xFF01 && r <= 0xFF60 || r >= 0x3001 && r <= 0x303E
	return fullwidth || unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}
