package report

import (
	"fmt"
	"os"
	"time"
)

// Progress writes the progress of a run to standard error: one changing line on a terminal, nothing
// elsewhere.
type Progress struct {
	terminal bool
	Began    time.Time
	shown    time.Time
	what     string
}

// NewProgress returns a Progress that starts now.
func NewProgress() *Progress {
	info, err := os.Stderr.Stat()
	return &Progress{terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, Began: time.Now()}
}

// Begin names the next step.
func (p *Progress) Begin(what string) {
	p.what, p.shown = what, time.Time{}
	p.At(0, 0)
}

// At reports how much of the step is done.
func (p *Progress) At(done, all int) {
	if !p.terminal || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	share := ""
	if all > 0 {
		share = fmt.Sprintf(" %3d %%", 100*done/all)
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%4.0f s  %s%s", time.Since(p.Began).Seconds(), p.what, share)
}

// End clears the line.
func (p *Progress) End() {
	if p.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
