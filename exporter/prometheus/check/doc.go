// Package check has Prometheus itself load what stands beside the exporter: the alert rules, and the
// queries of the dashboard. It is a module of its own, so that the exporter doesn't require Prometheus.
package check
