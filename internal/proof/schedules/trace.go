//go:build sim

package schedules

import (
	"fmt"
	"runtime"
	"strings"
)

// step counts an access, and writes it to the trace if there is one.
func (s *Schedule) step(what string) {
	s.steps++
	if !s.tracing {
		return
	}
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	access := ""
	for {
		f, more := frames.Next()
		_, function, _ := strings.Cut(f.Function, "penstock-go/penstock/")
		switch {
		case strings.HasPrefix(function, "internal/proof/schedules"):
		case strings.HasPrefix(function, "internal/shared"):
			access = strings.TrimPrefix(function, "internal/shared.")
		default:
			if what == "" {
				what = access
			}
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			s.trace = append(s.trace, fmt.Sprintf("%5d  %-10s %-22s %s:%d %s", s.steps, s.running.name, what, file, f.Line, function))
			return
		}
		if !more {
			return
		}
	}
}

// Note writes a line into the trace.
func (s *Schedule) Note(format string, args ...any) {
	if s.tracing && s.running != nil {
		s.trace = append(s.trace, fmt.Sprintf("       %-10s %s", s.running.name, fmt.Sprintf(format, args...)))
	}
}
