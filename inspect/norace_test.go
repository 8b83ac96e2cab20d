//go:build !race

package inspect_test

const raceDetector = false
