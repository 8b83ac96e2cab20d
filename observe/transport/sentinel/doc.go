// Package sentinel speaks the command API of alibaba/Sentinel, so that its dashboard lists a
// Penstock program, draws its metrics and, where that is allowed, edits its rules:
//
//	err := sentinel.ListenAndServe(ctx, api.Default(), sentinel.Config{
//		App:        "orders",
//		Dashboards: []string{"http://127.0.0.1:8080"},
//	})
//
// The API knows no users: the dashboard calls without a token. So it listens on a loopback address
// by default, serves only the addresses that [Config].AllowFrom names, and changes nothing unless
// [Config].AllowRuleWrites is set. See docs/sentinel.md, which also says which commands
// there are.
package sentinel
