//go:build race

package isolation_test

const raceDetector = true
