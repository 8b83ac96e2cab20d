//go:build unix

package main

import (
	"syscall"
	"time"
)

// used returns the processor time and the context switches of the process so far. Waking a sleeping
// thread takes at least one switch.
func used() (cpu time.Duration, switches int64, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	switches = int64(u.Nvcsw + u.Nivcsw) //nolint:unconvert // some machines count in 32 bits
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), switches, true
}
