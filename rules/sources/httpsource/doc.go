// Package httpsource reads rules from an HTTP server, and writes them there.
//
// [New] returns a source for one URL, for WatchSource of packages api and rules. It polls every ten
// seconds, which costs the server a 304 response if it sends an ETag or Last-Modified. So any web
// server will do, and any object store, if the Transport of the caller's client signs the requests:
//
//	source, err := httpsource.New("https://config.internal/orders/rules.yaml", httpsource.Config{
//		Header: http.Header{"Authorization": {"Bearer " + token}},
//	})
//
// A document is accepted whole or not at all: one that is truncated, in an encoding that was not
// requested, or longer than a rule file may be, is an error. Passwords and tokens in the URL or in
// headers are not in the source's name, nor in its errors.
//
// The page docs/sources.md has examples.
package httpsource
