// Package accesslog reads the access logs of web servers and proxies, line by line and in bounded
// memory. A line that is longer than [MaxLine], or isn't understood, is counted and skipped.
//
// A [Reader] parses the lines of one file. A [Sorter] brings them into the order of their arrival, a
// [Merger] joins several files, and [Spread] gives calls that were logged in whole seconds a time
// within their second. A [Namer] names routes as adapters do.
//
// Clients choose the text in a log: it must not reach a terminal or a file unescaped.
package accesslog
