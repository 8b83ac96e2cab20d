// Package penstockgrpc guards servers and clients of google.golang.org/grpc. Its name differs from
// its folder's, since programs that use it import grpc as well. One line guards a server, with each
// method as a resource:
//
//	server := grpc.NewServer(penstockgrpc.ServerOptions()...)
//
// and one a client:
//
//	conn, err := grpc.NewClient(target, append(penstockgrpc.DialOptions(), ...)...)
//
// Programs that order their interceptors themselves use the four interceptors.
//
// A call that no rule refuses runs as an inbound call of the resource "/package.Service/Method".
// Calls that its handler makes with its context are counted below it. A client's calls are
// outbound. A call that a rule makes wait waits within its own context.
//
// # Names
//
// The resource's name is the full method, with the leading slash. On a server with
// grpc.UnknownServiceHandler clients can make up methods; these share [Unknown]. Health checks and
// reflection are not guarded, since a refused probe gets the process restarted. [Resource] changes
// both.
//
// # Refusals
//
// Package refusal defines how a refused call is reported: ResourceExhausted, Unavailable or
// PermissionDenied, with google.rpc.ErrorInfo and, where the time is known, google.rpc.RetryInfo
// and the trailer grpc-retry-pushback-ms, which clients with a retry policy follow. A handler that
// returns the refusal of a nested call, wrapped or not, reports the same, unless it has turned it
// into a status. A client whose call is refused locally gets an error that is both:
// status.FromError finds the status, errors.As the *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, for a client also ResourceExhausted, and a panic, which continues. See
// [FailureCodes] and [Failure]. They leave out a call that its caller has canceled by then, unless
// it is a stream that has carried a message, and a call whose handler returns the refusal of a
// nested call. A handler that turns such a refusal into a status calls refusal.Tell to report it.
//
// # Streams
//
// A stream is one call that lasts until its end. Its response time does not count; see
// api.LongLived. On a server it ends when the handler returns. On a client it ends when RecvMsg
// returns an error or io.EOF, or its one response if there are no more; when SendMsg returns an
// error other than io.EOF; when Header returns no header; when the context that was passed ends; or
// when the connection is closed, even if nobody reads the stream again. CloseSend is not the end.
// As gRPC itself requires, every stream must reach one of these ends.
//
// # Limits
//
// Retries by a client's retry policy are one call of its resource: the interceptor is above them.
// The address that a call goes to is not known when it is guarded; a client of one endpoint passes
// it with [WithOptions] and api.Endpoint. This package does not limit the messages within a stream.
//
// Everything here is safe for concurrent use.
//
// The page docs/adapters/grpc.md has examples.
package penstockgrpc
