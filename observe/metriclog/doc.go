// Package metriclog writes and reads Sentinel's metric log and block log, for collectors and
// scripts made for Sentinel.
//
// The metric log has a line for each resource and second in which something happened:
//
//	1767366000000|2026-01-02 15:00:00|GET /orders|12|3|12|0|4|0|1|0
//
// The columns are the second in milliseconds and as a date, the resource, the units passed,
// blocked, completed and failed, the mean response time in milliseconds, the units borrowed, the
// calls in flight, and the class, which is
// 0. The log is in files such as
//
//	shop-metrics.log.2026-01-02
//	shop-metrics.log.2026-01-02.1
//
// each with an index, shop-metrics.log.2026-01-02.idx: for each second, that second since 1970 and
// the offset of its first line, as two big-endian numbers of 8 bytes. A new file starts when a
// process starts, when the day changes and when the current one is full; the oldest are removed.
// shop-metrics.log is a link to the newest.
//
// The block log has a line for each second and kind of refusal:
//
//	2026-01-02 15:00:00|1|GET /orders,FlowException,default,app-a,orders|3
//
// The columns are the resource, Sentinel's name of the refusal, the origin that the rule limits,
// the caller, the rule, and the number of units refused. Lines of a hotspot rule have the refused
// value after the rule. The log is in sentinel-block.log, with older parts in sentinel-block.log.1
// and so on.
//
// If another process removes, renames or truncates a file, the log leaves it alone, starts a new one
// when there is something to write, and reports it in the Guard's log.
//
// # What a crash leaves
//
// Each second is written at its end, in one write, after its index entry. So a killed process loses
// the last second, and may leave a line without an end, which readers skip, or an index entry
// without lines. Nothing is synced to disk: if the machine itself fails, the loss depends on the
// system.
//
// The page docs/metrics.md shows how to set up the logs.
package metriclog
