// Package check makes Prometheus itself load the files beside the exporter: the alert rules, and
// the queries of the dashboard. It is a module of its own, so that the exporter doesn't require
// Prometheus.
package check
