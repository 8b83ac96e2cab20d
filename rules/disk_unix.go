//go:build unix

package rules

import (
	"errors"
	"os"
	"syscall"
)

func (realDisk) syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	// Some file systems can't sync a directory, and don't need to.
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// takeOwner gives f the owner and group of another file, or at least the group. Only root may give
// files away.
func takeOwner(f *os.File, like os.FileInfo) {
	stat, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = f.Chown(-1, int(stat.Gid))
	}
}
