// Package tables is for measuring tools: it describes the machine, and keeps tables in pages.
package tables

import (
	"fmt"
	"os"
	"strings"
)

// Keep puts text between the two lines that enclose the page's part with this name:
//
//	<!-- name: begin, written by ... -->
//	<!-- name: end -->
func Keep(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, _, after, err := cut(string(old), name)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(before+text+after), 0o644)
}

// Kept returns the text between these lines.
func Kept(page, name string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	_, kept, _, err := cut(string(text), name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", page, err)
	}
	return kept, nil
}

// cut finds the part; before ends with its first line, after begins with its last.
func cut(page, name string) (before, kept, after string, err error) {
	first, last := "<!-- "+name+": begin", "<!-- "+name+": end -->"
	start := strings.Index(page, first)
	end := strings.Index(page, last)
	line := -1
	if start >= 0 {
		line = strings.IndexByte(page[start:], '\n')
	}
	if line < 0 || end < start+line {
		return "", "", "", fmt.Errorf("the lines %q and %q must stand around the table", first+" ... -->", last)
	}
	body := start + line + 1
	return page[:body], page[body:end], page[end:], nil
}
