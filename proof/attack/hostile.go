package main

import (
	"strings"
)

// Words that a reader of YAML takes for something else than text.
var words = []string{"<<", "=", "~", "null", "Null", "true", "True", "yes", "No", "on", "off", "y", "-", "?", "0x1f", "1e3", "1_000",
	".inf", "-.INF", ".nan", "2001-01-01", "12:30:45", "0o17", "017", "+1", "---", "...", "!!binary", "&a", "*a", "- a", "a: b", "a #b", "{}", "[]", "@a", "`a", "%a", "|", ">", "!", "'", `"`}

// noText are those of them that YAML takes for something else, unless they are quoted.
var noText = []string{"<<", "~", "null", "Null", "true", "True", "0x1f", "1e3", ".inf", "-.INF", ".nan", "0o17", "017", "+1"}

// hostileName returns a name of at most so many bytes, not empty.
func hostileName(r *round, most int) string {
	if r.one(3) {
		return pick(r, words...)
	}
	pieces := []string{"a", "orders", " ", "\n", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f", "\u0085", "\u009b31m", "\u202e", "\u2028", "\ufeff",
		"\u200b", "é", "界", "\U0001f600", "\U000e0041", "\ufffd", "\ufffe", "</script>", "&lt;", `\u0041`, `"`, "'", "\\", ": ", " #", "<<"}
	if r.one(4) {
		pieces = append(pieces, "\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80")
	}
	var name strings.Builder
	for range 1 + r.IntN(6) {
		name.WriteString(pick(r, pieces...))
	}
	if r.one(10) {
		name.WriteString(strings.Repeat(pick(r, "x", "界", "\u202e", "\x00"), r.IntN(most)))
	}
	return name.String()[:min(name.Len(), most)]
}
