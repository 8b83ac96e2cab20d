// Package report prints what was measured: on a terminal how far it is, and tables that
// fit 80 columns.
package report
