//go:build !race

package hotspot_test

const raceDetector = false
