// Package system protects the process as a whole: its rules look at everything that
// comes from outside, whatever the resource, and refuse some of it when that is too
// much, or when the machine has too much to do. Only inbound calls are judged and
// counted (see [core.Inbound]); the calls that these make are let through.
//
// There are two kinds of triggers:
//
//   - [QPS] and [Concurrency] are limits: so many units in an interval, so many at
//     once. They are exact.
//   - [Load], [CPU] and [RT] are signs of overload, read off the machine or off the
//     calls that completed. What happens beyond them for load and CPU is the rule's
//     [Strategy].
//
// Take a [CPU] rule where the work is done by the processor, [Load] where calls wait
// for disks as well, [Concurrency] or [QPS] where you know what the process can bear,
// and [RT] only where the calls are much alike.
package system
