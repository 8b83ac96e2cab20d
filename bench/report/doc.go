// Package report prints what was measured: on a terminal how far it is, tables that
// fit 80 columns, and the part of a page that a command writes.
package report
