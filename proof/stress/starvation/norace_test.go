//go:build !race

package starvation

const raceDetector = false
