// Package upstream decides what is sent to the servers that this process calls, so that its calls
// don't make their overload worse. A rule is for the resources of clients, as their adapters name
// them, such as "GET api.example.com". It does one or more of three things:
//
//   - obey: after an answer that says when to come back, nobody in the process calls before then.
//   - retries: at most a share of the calls in flight are retries.
//   - throttle: calls are refused at random, the more, the fewer of them the server accepts.
//
// The adapters of clients report answers. Code that calls api.Entry itself does so by
// api.Admitted.Fail with an error marked by api.Overloaded.
//
// # Pauses
//
// An answer asks for a pause of d at the instant at which it is reported, a. No call that is decided
// on from then until a + d is admitted. From then until a + d + d/10, a call is admitted with a
// probability that grows evenly from 0 to 1, so that callers don't return in one instant; and the
// RetryAfter of a refusal ends at an instant drawn evenly from that tenth. A later answer can only
// extend the pause.
//
// # Throttle
//
// The law is that of "Handling Overload" in Google's Site Reliability Engineering: a call is refused
// with the probability
//
//	max(0, (requests - k·accepts) / (requests + 1))
//
// over the last interval, but at most 0.99. Requests are calls that have ended, and calls that the
// throttle refused; accepts are the requests that the server answered, except by an overload or too
// late. Calls in flight are neither, so that a burst of first calls doesn't look like a server
// that accepts nothing. The first call in each second isn't refused. If nothing at all was accepted
// and the probability has reached 0.99, it is the only one that passes.
//
// The page docs/rules/upstream.md has every field and examples.
package upstream
