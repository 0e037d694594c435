// Package server serves a tuner.Service over gRPC (proto/tuner/v1). It listens on one or more
// addresses, checks each caller's permissions, and limits the size, number and duration of calls.
// docs/deploy.md has permissions, tokens and limits for operators.
//
// # How a call works
//
// A gate sees the headers of a call before its body is read. It refuses unknown methods, unknown
// callers, callers over their rate, and calls over the limit of running calls. A caller
// identifies itself by a bearer token or a client certificate. Unary calls and streams then pass
// a chain of interceptors and reach the service.
//
//	recover → log and count → authorize → bytes in flight → deadline → decode
//
// Methods are denied unless wire.Methods lists them. [New] fails if the list lacks a method. A
// face in another protocol, such as package web, is a client within the process. It gets there by
// a [Pipe], and its callers pass the same gate and the same chain.
//
// # Permissions
//
// Without tokens and client certificates, every caller is an admin, and the server listens only
// on loopback or a unix socket. A listener that other machines can reach needs TLS, and tokens or
// client certificates, unless Options.InsecureAllowRemote is set. Health checks need no
// permission, and reflection needs any known caller.
//
// A token has 256 random bits and is shown once, when [AddToken] makes it. The token file holds
// SHA-256 digests, and only its owner may read it. It is checked at every call, and certificate
// files at every connection. If a file becomes unreadable or invalid, the server logs an error
// and continues with the contents read before.
//
// # Answers
//
// Stored data can always be returned. An answer takes at most 3 MiB, less than the 4 MiB that a
// gRPC client accepts by default. Lists, also of reports, have pages. If one trial is too large,
// Trial.omitted names the parts left out. An ask for more trials than its answer could hold is
// refused before it hands out any. The one exception is an outcome of more than 3 MiB, which only
// a command on the file can store.
//
// # Limits
//
// [Limits] holds the limits of connections, calls, watches and bytes. The error of a refused call
// names the limit, its flag and the remedy. The log gets at most one line in ten seconds for each
// limit, and the metric tuner_limited_total counts refusals.
//
// Callers without a token cannot displace others, see connections. Callers with a token cannot
// starve others. Each token and each study has its share of calls and watches, and each token has
// a limit of bytes a second. The last tenth of connections, calls and watches is reserved for
// admins. On a server without tokens only the limits in total apply.
//
// # Errors and stopping
//
// Package wire turns errors into gRPC statuses. Where a caller must not see the details, it gets
// an error id, and the log has the error under that id.
//
// When the context of [Server.Serve] ends, health checks answer NOT_SERVING. After
// Options.DrainDelay the server accepts no more calls and ends streams with UNAVAILABLE, which
// clients resume. Running calls have Options.StopTimeout to finish. The caller of Serve closes
// the service afterwards.
package server
