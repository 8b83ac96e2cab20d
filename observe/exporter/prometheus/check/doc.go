// Package check loads the exporter's alert rules, and the queries of its dashboard, with Prometheus
// itself. It is a separate module, so that the exporter doesn't require Prometheus.
package check
