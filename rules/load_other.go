//go:build !unix

package rules

import "os"

const openFlags = 0

// anyoneMayWrite can't be known: package os makes the modes up.
func anyoneMayWrite(os.FileInfo) bool { return false }

// sameOwner can't be known.
func sameOwner(os.FileInfo, os.FileInfo) bool { return false }

// belongsToOther can't be known either.
func belongsToOther(os.FileInfo) bool { return false }
