//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package rules

import (
	"context"
	"sync"
)

var writing sync.Mutex

// lockDir excludes callers in this process only: the system has no locks that others respect.
func lockDir(context.Context, string) (unlock func(), err error) {
	writing.Lock()
	return writing.Unlock, nil
}
