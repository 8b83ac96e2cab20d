// Package system protects the process as a whole: its rules apply to everything that comes from
// outside, for any resource, and refuse some of it when there is too much, or when the machine is
// overloaded. Only inbound calls are limited and counted (see api.Inbound); the calls that these
// make pass.
//
// There are two kinds of triggers:
//
//   - [QPS] and [Concurrency] are limits on the units in an interval and on the units in flight.
//     They are exact.
//   - [Load], [CPU] and [RT] are signs of overload, read off the machine or off completed calls.
//     For load and CPU, the rule's [Strategy] decides what happens above the threshold.
//
// Use a [CPU] rule where the processor does the work, [Load] where calls wait for disks as well,
// [Concurrency] or [QPS] where you know the capacity of the process, and [RT] only where calls are
// much alike.
//
// The page docs/rules/system.md has every field and examples.
package system
