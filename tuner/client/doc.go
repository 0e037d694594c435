// Package client is the tuner.Service interface over the wire: whoever works
// with a service in the process works with a server the same way.
//
// # One effect for one call
//
// Every call that changes something carries a request id (its caller's, or 128
// random bits), and is sent again with the same id, after a pause that grows
// and varies, as long as its outcome is unknown: the server is not there, the
// connection broke, the store cannot tell. However often it arrives, it has one
// effect and one answer. So a call ends in one of three ways: with its answer;
// with an error after which nothing has happened; or with the code tuner.Unknown,
// if Options.RetryFor or the caller's context ran out before the outcome was
// known. In that case, and if the context ran out, the error wraps the context's
// too. Heartbeats carry no id, for twice is as good as once. A deletion names
// the study by its id besides its name, so that sending it again cannot hit a
// new study of the same name.
//
// Many trials at once travel in as many messages as they need, each trial under an
// id of its own. So if the connection breaks between two messages, or within one, the
// first of the trials are there, and the same again stores the rest.
//
// Refusals for a limit of the server are waited out likewise, where the server
// says how long that takes.
//
// # Streams
//
// Watch goes on where it was when the connection breaks, without gaps or
// repetitions. A backup does not: what was written by then is of no use.
//
// # Errors
//
// Errors are *tuner.RemoteError with the code and message that the same error
// has in the process; tuner.CodeOf knows them. What is wrong with one of many trials
// is within a *tuner.CommandError, as there.
//
// # Costs
//
// To import 10,000 trials of eight parameters, 500 at once, took client and server 2.1 s
// of processors together; one by one it
// took them 14 s (2026-11-21, one run and two).
package client
