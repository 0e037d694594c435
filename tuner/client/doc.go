// Package client is the tuner.Service interface over the wire. You use it as you use a
// service in the process.
//
// # One effect for one call
//
// Every call that changes something carries a request id, which is that of its caller or
// 128 random bits. While its outcome is unknown, because the server or the connection
// failed, the call is sent again with the same id, after a pause that grows and varies. It
// has one effect and one answer, even if it arrives several times.
//
// So a call returns its answer, or an error after which nothing has happened, or an error
// with the code tuner.Unknown, because Options.RetryFor or the caller's context ran out
// before the outcome was known. If the context ran out, the error wraps its error too.
//
// Heartbeats carry no id, because they are idempotent. A deletion names the study by its
// id besides its name, so that a second try cannot hit a new study of the same name.
//
// Many trials at once go into as many messages as they need, each trial under an id of its
// own. If the connection breaks between two messages, or within one, the first trials are
// stored, and the same call again stores the rest.
//
// A call that a limit of the server refused is tried again if the server says how long to
// wait.
//
// # Streams
//
// Watch continues after the connection broke, without gaps or repetitions. A backup does
// not, and the bytes written by then are useless.
//
// # Errors
//
// Errors are *tuner.RemoteError with the code and message of the same error in the
// process, and tuner.CodeOf returns their code. The error of one of many trials is within
// a *tuner.CommandError, as in the process.
package client
