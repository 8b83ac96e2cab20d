// Package penstockgrpc guards servers and clients of google.golang.org/grpc. It is not named as its
// folder, since programs that use it import grpc as well. One line guards a server, each of
// its methods as a resource of its own:
//
//	server := grpc.NewServer(penstockgrpc.ServerOptions()...)
//
// and one a client:
//
//	conn, err := grpc.NewClient(target, append(penstockgrpc.DialOptions(), ...)...)
//
// Programs that put their interceptors in an order take the four interceptors themselves.
//
// A call that no rule refuses runs as an inbound call of the resource "/package.Service/Method",
// and calls that its handler makes with its context are counted below it. A client's calls
// are outbound. Where rules have a call wait, it waits within its own context.
//
// # Names
//
// The name of a resource is the full method, with the slash before it. A server with
// grpc.UnknownServiceHandler serves methods that its clients make up: they share [Unknown].
// Health checks and reflection are not guarded, since a refused probe has the process
// restarted. [Resource] changes all that.
//
// # Refusals
//
// A refused call is told by package refusal: ResourceExhausted, Unavailable or
// PermissionDenied, with google.rpc.ErrorInfo and, where it is known, google.rpc.RetryInfo and
// the trailer grpc-retry-pushback-ms, by which clients with a retry policy go. The same is told
// where a handler returns the refusal of a call of its own, wrapped or not, unless it
// has made a status of it. A client whose call is refused before it is made gets an error that is both:
// status.FromError finds the status, errors.As the *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, of a client ResourceExhausted as well, and a panic, which goes on as
// it is. See [FailureCodes] and [Failure]. They leave out a call that its caller has canceled
// by then, unless it is a stream that has carried a message, and one whose handler returns a refusal
// that it got from a call of its own. A handler that makes a status of such a refusal calls
// refusal.Tell, so that it is known.
//
// # Streams
//
// A stream is one call that lasts until its end. Its response time does not count, see
// api.LongLived. On a server it ends when the handler returns. On a client it ends when
// RecvMsg returns an error or io.EOF, or its one response where there are no more; when
// SendMsg returns an error that is not io.EOF; when Header returns none; when the context
// that was passed ends, or the connection is closed, also if nobody ever looks at the stream again.
// CloseSend is not the end. As gRPC itself has it, a stream must come to one of these.
//
// # Limits
//
// Retries by a client's retry policy are one call of its resource: the interceptor is above
// them. To which address a call goes is not known when it is guarded; a client of one endpoint
// says so by [WithOptions] and api.Endpoint. A server's limit on one client's messages in a
// stream is none of this.
//
// Everything here is safe for concurrent use.
package penstockgrpc
