//go:build !unix

package rules

import "os"

// syncDir does nothing: directories can't be synced here.
func (realDisk) syncDir(string) error { return nil }

// takeOwner does nothing: package os knows no owners here.
func takeOwner(*os.File, os.FileInfo) {}
