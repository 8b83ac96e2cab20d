// Package nethttp guards servers and clients of net/http. One line guards a server, each of
// its routes as a resource of its own:
//
//	http.ListenAndServe(":8080", nethttp.Handler(mux))
//
// and one a client:
//
//	client := &http.Client{Transport: nethttp.Transport(nil)}
//
// A request that no rule refuses runs as an inbound call of the resource "GET /users/{id}",
// the pattern of its route, and calls that its handler makes with the request's context are
// counted below it. One that is refused is answered by package refusal: 429, 503 or
// 403, with Retry-After where that is known.
//
// # Names
//
// Paths and methods are chosen by clients, so neither makes resources without bound: the
// name is the pattern's, methods that HTTP does not know are "_OTHER", and requests that no
// route serves, also those that are answered by 405, share "GET __unmatched__", one for each method.
//
// # Failures
//
// Breakers count a status of 500 and above as a failure of the resource, and a panic. They
// leave out a request that its client has given up by then, a refusal that the handler got from a
// call of its own and answered by refusal.Write, and http.ErrAbortHandler when the client is gone.
//
// # Streams
//
// A call lasts until its handler returns. Where the response is a stream of events, its
// response time does not count, see api.LongLived. A handler that takes over the
// connection, as WebSockets do, ends the call by that, unless [HoldHijacked] says
// otherwise.
//
// # Limits
//
// Below an http.TimeoutHandler or the like the handler may still run when the call has
// ended: guard what is inside of it. A client of HTTP/1 that leaves is only noticed once the
// request's body has been read, so a request with a body may wait for a rule though its client has
// gone, at most as long as the rule lets it. Don't guard probes such as /healthz: one that is
// refused has the process restarted. Don't guard gRPC by this package: its clients take a plain 429
// for something else.
//
// Everything here is safe for concurrent use.
package nethttp
