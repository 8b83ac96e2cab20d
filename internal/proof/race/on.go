//go:build race

package race

// Enabled tells whether the race detector is on.
const Enabled = true
