// Package wire translates between package tuner and the wire contract (proto/tuner/v1), in
// both directions and in one place, so that server and client cannot disagree.
//
// # Messages
//
// Fields of the same names are copied by a table (package protostruct), which lists those
// whose names differ. EncodeX encodes the message and DecodeX reads it. For every value that a service takes or
// returns, DecodeX(EncodeX(v)) is v. NaN and ±Inf are preserved, times become UTC and lose
// their monotonic part, the zero time is a message that is left out, and empty slices and
// maps become nil. Metrics and intermediate values are maps on the wire and come back in
// order of name, so those of an encoded request must have different names
// ([study.InvalidError] otherwise). Values that the types of the wire cannot represent
// saturate, and the service refuses them as it would in the process.
//
// Decoding checks form only. It refuses unknown enums, malformed resource names, times out
// of range and spaces that do not parse, with [study.InvalidError] or space errors. The
// service checks whether the content makes sense.
//
// # Errors
//
// [Status] turns an error of a service into a canonical gRPC status with a
// google.rpc.ErrorInfo, and [ReadError] turns it back. tuner.CodeOf is the same before and
// after, for every error. Messages that may contain paths or other internals of the server
// are not sent. See [Status].
package wire
