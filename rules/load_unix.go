//go:build unix

package rules

import (
	"os"
	"syscall"
)

// openFlags make opening a named pipe without a writer return at once.
const openFlags = syscall.O_NONBLOCK

func anyoneMayWrite(info os.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
