// Package check loads the files beside the exporter with Prometheus itself: the alert rules, and
// the queries of the dashboard. It is a separate module, so that the exporter doesn't require
// Prometheus.
package check
