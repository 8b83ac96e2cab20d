// Package pages contains only tests, which compare the pages of docs, README.md and CONTRIBUTING.md
// with the code. Links must lead somewhere, names and commands exist, rule files load, code compile,
// and output fit a terminal. The tests run in the folder docs, and their paths are relative to it.
package pages
