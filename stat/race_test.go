//go:build race

package stat

const raceDetector = true
