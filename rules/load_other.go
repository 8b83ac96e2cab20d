//go:build !unix

package rules

import "os"

const openFlags = 0

// anyoneMayWrite returns false: package os makes the modes up.
func anyoneMayWrite(os.FileInfo) bool { return false }

// sameOwner returns false: owners are unknown.
func sameOwner(os.FileInfo, os.FileInfo) bool { return false }

// belongsToOther returns false: owners are unknown.
func belongsToOther(os.FileInfo) bool { return false }
