//go:build !race

package metriclog

const raceDetector = false
