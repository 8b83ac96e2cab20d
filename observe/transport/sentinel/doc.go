// Package sentinel implements the command API of alibaba/Sentinel, so that its dashboard lists a
// Penstock program, draws its metrics and, if allowed, edits its rules:
//
//	err := sentinel.ListenAndServe(ctx, api.Default(), sentinel.Config{
//		App:        "orders",
//		Dashboards: []string{"http://127.0.0.1:8080"},
//	})
//
// The API has no authentication: the dashboard sends no token. So it listens on a loopback address by
// default, serves only the addresses in [Config].AllowFrom, and changes nothing unless
// [Config].AllowRuleWrites is set. docs/sentinel.md lists the commands.
package sentinel
