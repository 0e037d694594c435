// Package server is the gRPC face of a tuner.Service: proto/tuner/v1 on one
// or more listeners, with who may do what, and with limits on everything that
// a caller can make large, many or slow.
//
// # A call's way
//
// Before a call's body is read, a gate sees its headers: is the method one that
// this server knows, who calls (a bearer token or a client certificate), has he
// called too often, are too many calls under way. What passes goes through a
// chain of interceptors, for unary calls and streams alike:
//
//	recover → log and count → authorize → bytes in flight → deadline → decode
//
// and then to the service. Authorization is deny by default: a method that the
// permission table does not know makes [New] fail, and is refused besides.
//
// # Who may do what
//
// Without tokens and client certificates everybody who can reach the server is
// an admin; so it listens on loopback or a unix socket only. A listener that
// others can reach needs TLS and tokens or client certificates; the only way
// around it is Options.InsecureAllowRemote.
//
//	admin   everything
//	read    all studies and trials, nothing that changes them
//	worker  of all or of named studies: read them, ask, tell, report, heartbeat,
//	        enqueue, add, and set attributes of trials
//
// Health checks need no permission. Reflection, off by default, needs any.
//
// Tokens have 256 random bits and are shown once, when [AddToken] makes them.
// Their file, which only its owner may read, holds SHA-256 digests. It is looked
// at on every call, so that a token that was added or revoked is so at once;
// certificates likewise on every connection. A file that became unreadable or
// unsound is logged and leaves in force what was read before.
//
// # Other protocols
//
// A face in another protocol, such as package web, is a client within the process. It gets
// there by a [Pipe]. Its callers pass the same gate, with their own addresses, tokens and
// certificates, and then the same chain.
//
// # Answers
//
// What is stored can be answered: an answer takes at most 3 MiB, less than the 4 MiB that
// a client of gRPC takes by default. Trials carry no reports unless a request asks for
// them, and ListReports pages through those. Lists come in pages of as many bytes. Where
// a trial is too large even so, Trial.omitted names what was left out of it. An ask for
// more trials than its answer could hold is refused before it hands out any. The one
// exception is an outcome of more than 3 MiB, which only a command on the file can store.
//
// # Limits
//
// [Limits] has those of connections, calls, watches and bytes. A caller who is refused
// reads the limit, its flag and what to do; the log has a line, at most one in ten
// seconds for each limit, and the metric tuner_limited_total counts.
//
// Without a token nobody takes the place of others. Health checks do not count as calls.
// A connection is a stranger until a call on it shows a token. There are so many
// strangers from one address and in all; one of them, drawn by chance, is closed when
// there is one more, or when there are too many connections. A stranger that is idle for
// a minute is closed, and a handshake has Limits.ConnectTimeout.
//
// With a token nobody starves others: each token and each study has its share of calls
// and watches, each token its bytes a second, and the last tenth of calls and watches is
// for admins. On a server without tokens there are only the limits of all.
//
// # Errors
//
// Package wire makes statuses of errors. What a caller is not to see is in the
// log under the error id that he gets in its place.
//
// # Stopping
//
// When the context of [Server.Serve] ends, health checks say NOT_SERVING;
// Options.DrainDelay later the server takes no more calls, streams end with
// UNAVAILABLE (clients resume), and calls under way have Options.StopTimeout to
// finish. The service is the caller's to close, afterwards.
//
// # Costs
//
// Beyond gRPC itself a call costs a stat of the token file, a SHA-256 of the
// token, a comparison with each token of the file, and, if debug logs are on, a
// line; together some microseconds.
package server
