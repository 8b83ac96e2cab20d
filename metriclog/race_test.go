//go:build race

package metriclog

const raceDetector = true
