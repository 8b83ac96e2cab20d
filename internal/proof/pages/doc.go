// Package pages has tests only: they compare the pages of docs, README.md and CONTRIBUTING.md with the code.
// Links lead somewhere, names and commands exist, rule files load, code compiles, and output fits a terminal.
// The tests run in the folder docs, and their paths are relative to it.
package pages
