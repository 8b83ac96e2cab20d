// Package console serves a dashboard of a Guard, and the JSON API that the dashboard and the
// command penstock use:
//
//	go func() {
//		if err := console.ListenAndServe(ctx, guard, console.Config{}); err != nil {
//			log.Print(err)
//		}
//	}()
//
// Then http://127.0.0.1:8719 shows traffic, refusals and their reasons in a browser. By default
// only programs and browsers on the same machine can reach it, and nothing can be changed.
// docs/console.md describes the API and the configuration.
//
// Like package inspect, it reads the engine without delaying calls. Importing this package starts
// nothing.
package console
