// Package console serves a dashboard of a Guard, and the JSON API that the dashboard and the
// command penstock read:
//
//	go func() {
//		if err := console.ListenAndServe(ctx, guard, console.Config{}); err != nil {
//			log.Print(err)
//		}
//	}()
//
// Then http://127.0.0.1:8719 shows in a browser what comes in, what is refused, and why. Without
// further configuration only programs and browsers of the same machine reach it, and nothing can be
// changed. docs/console.md has the API and what may be configured.
//
// Whatever is served is read off the engine as package inspect reads it, so no call waits for a
// reader. Importing this package starts nothing.
package console
