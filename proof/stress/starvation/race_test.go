//go:build race

package starvation

const raceDetector = true
