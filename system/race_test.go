//go:build race

package system_test

const raceDetector = true
