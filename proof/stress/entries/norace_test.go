//go:build !race

package entries

const raceDetector = false
