//go:build unix

package rules

import (
	"os"
	"syscall"
)

// openFlags make opening a named pipe without a writer return immediately.
const openFlags = syscall.O_NONBLOCK

func anyoneMayWrite(info os.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// sameOwner reports whether two files belong to the same user.
func sameOwner(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, both := b.Sys().(*syscall.Stat_t)
	return ok && both && x.Uid == y.Uid
}

// belongsToOther reports whether the file belongs to a user other than the current one.
func belongsToOther(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}
