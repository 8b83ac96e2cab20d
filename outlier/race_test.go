//go:build race

package outlier_test

const raceDetector = true
