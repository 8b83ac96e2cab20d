// Package httpsource reads rules from a server of HTTP, and writes them there.
//
// [New] makes a source of one URL, for WatchSource of packages api and rules. Every ten
// seconds it asks whether the document is another one, which costs the server an answer of
// 304 if it sends an ETag or Last-Modified. So any web server will do, and any store of
// objects, whose requests are signed by the Transport of the caller's own client:
//
//	source, err := httpsource.New("https://config.internal/orders/rules.yaml", httpsource.Config{
//		Header: http.Header{"Authorization": {"Bearer " + token}},
//	})
//
// A document is taken whole or not at all: one that is cut short, in an encoding that was not asked
// for, or longer than a rule file may be, is an error. Passwords and tokens in the URL or in
// headers are not in the source's name, nor in its errors.
package httpsource
