//go:build !race

package clocks

const raceDetector = false
