// Package nethttp guards servers and clients of net/http. One line guards a server, with each route
// as a resource:
//
//	http.ListenAndServe(":8080", nethttp.Handler(mux))
//
// and one a client:
//
//	client := &http.Client{Transport: nethttp.Transport(nil)}
//
// A request that no rule refuses runs as an inbound call of the resource "GET /users/{id}", the
// pattern of its route. Calls that its handler makes with the request's context are counted below
// it. Package refusal responds to a refused request with 429, 503 or 403, with Retry-After where
// the time is known.
//
// # Names
//
// Clients choose paths and methods, so neither makes resources without bound: the name is the
// pattern, methods unknown to HTTP are "_OTHER", and requests that no route serves, including those
// rejected with 405, share "GET __unmatched__", one for each method.
//
// # Failures
//
// Breakers count a status of 500 and above, and a panic, as a failure of the resource. They leave
// out a request that its client has given up by then, the refusal of a nested call if the handler
// responded with refusal.Write, and http.ErrAbortHandler when the client has disconnected.
//
// # Streams
//
// A call lasts until its handler returns. If the response is a stream of events, its response time
// does not count; see api.LongLived. A handler that takes over the connection, as WebSockets do,
// ends the call by doing so, unless [HoldHijacked] is set.
//
// # Limits
//
// Below an http.TimeoutHandler or the like the handler may still run when the call has ended: guard
// the handler inside it. net/http notices that an HTTP/1 client has disconnected only once the
// request's body has been read, so a request with a body may wait for a rule after its client has
// disconnected, at most as long as the rule allows. Don't guard probes such as /healthz: a refused
// probe gets the process restarted. Don't guard gRPC with this package: its clients misread a plain
// 429.
//
// Everything here is safe for concurrent use.
//
// The page docs/adapters/nethttp.md has examples.
package nethttp
