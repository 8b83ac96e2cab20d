package rules

import "strings"

// suggestion returns the name that key was likely meant to be, worded for the end of an error, or
// "" if none is near.
func suggestion(key string, names []string) string {
	key = strings.ToLower(clip(key))
	nearest, least := "", 1+max(1, len(key)/3)
	for _, name := range names {
		if d := editDistance(key, strings.ToLower(name)); d < least {
			nearest, least = name, d
		}
	}
	if nearest == "" {
		return ""
	}
	return ` (did you mean "` + nearest + `"?)`
}

// editDistance returns the minimum number of bytes to insert, delete, replace or swap with their
// neighbor to turn a into b, without editing a byte twice (optimal string alignment).
func editDistance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] is the distance of a[:i] and b[:j]
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			d[i][j] = min(replaced, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
