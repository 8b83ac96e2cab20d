//go:build !race

package limits

const raceDetector = false
