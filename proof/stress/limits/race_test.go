//go:build race

package limits

const raceDetector = true
