// Package report prints measurements: progress on a terminal, and tables that fit 80 columns.
package report
