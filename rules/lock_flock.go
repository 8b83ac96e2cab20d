//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package rules

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// betweenLocks is the time before a lock is retried.
const betweenLocks = 10 * time.Millisecond

// lockDir locks a directory against other callers of lockDir, in this process and in others. It
// leaves nothing behind: the system releases the lock even if the process is killed.
func lockDir(ctx context.Context, path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { dir.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			dir.Close()
			return nil, os.NewSyscallError("flock", err)
		}
		if !sleep(ctx, betweenLocks) {
			dir.Close()
			return nil, ctx.Err()
		}
	}
}
