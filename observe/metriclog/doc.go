// Package metriclog writes Sentinel's metric log and block log, and finds again what they say:
// what collectors and scripts for Sentinel read, they read here too.
//
// The metric log has a line for each resource and second in which something happened:
//
//	1767366000000|2026-01-02 15:00:00|GET /orders|12|3|12|0|4|0|1|0
//
// which is the second in milliseconds and as a date, the resource, the units that passed, were
// refused, completed and failed, the mean response time in milliseconds, the units that were
// borrowed, the calls in flight, and the class, which is 0. It lies in files such as
//
//	shop-metrics.log.2026-01-02
//	shop-metrics.log.2026-01-02.1
//
// each with an index beside it, shop-metrics.log.2026-01-02.idx: for each second, that second since
// 1970 and where its first line begins, as two big-endian numbers of 8 bytes. A new file is begun
// when a process starts, when the day changes and when one is full; the oldest are removed.
// shop-metrics.log is a link to the newest.
//
// The block log has a line for each second and kind of refusal:
//
//	2026-01-02 15:00:00|1|GET /orders,FlowException,default,app-a,orders|3
//
// which is the resource, what Sentinel calls such a refusal, whose calls the rule is about, who
// called, the rule, and how many units were refused. A hotspot rule's lines have the refused value
// after the rule. It lies in sentinel-block.log, and older parts in
// sentinel-block.log.1 and so on.
//
// A file that somebody else removes, renames or cuts is left alone: another one is begun with the next second that
// has something to write, and the Guard's log says so.
//
// # What a crash leaves
//
// Each second is written when it is over, by one write, behind its entry in the index. So a process
// that is killed loses the last second, and may leave a line without an end, which readers skip, or
// an entry of the index without lines. Nothing is synced to the disk: where the machine itself
// stops, what is lost is up to the system.
package metriclog
