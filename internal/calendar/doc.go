// Package calendar divides time into the days, weeks and months of a time zone, and counts units in
// the current one.
//
// A [Calendar] knows the periods: days of 23 or 25 hours, months of 28 to 31 days. A [Meter] is one
// count and the end of the period that it counts in.
package calendar
