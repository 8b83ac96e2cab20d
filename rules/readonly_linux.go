package rules

import "syscall"

// readOnly reports whether the file system is mounted read-only, so that nobody can write there,
// regardless of the modes.
func readOnly(path string) bool {
	const readOnlyMount = 1 // ST_RDONLY
	var stat syscall.Statfs_t
	return syscall.Statfs(path, &stat) == nil && stat.Flags&readOnlyMount != 0
}
