//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package quotalog

import (
	"errors"
	"os"
	"runtime"
)

var errLocked = errors.New("the file is locked")

// lockFile fails: two processes with one log would admit too much.
func lockFile(*os.File) error {
	return errors.New("quota logs need file locks, which Penstock doesn't have on " + runtime.GOOS)
}
