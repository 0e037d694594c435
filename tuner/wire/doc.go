// Package wire translates between package tuner and the wire contract
// (proto/tuner/v1), in both directions and in one place, so that server and
// client cannot disagree.
//
// # Messages
//
// EncodeX makes the message, DecodeX reads it: for every value that a service
// takes or returns, DecodeX(EncodeX(v)) is v. NaN and ±Inf pass, times become
// UTC and lose their monotonic part, the zero time is a message that is left
// out, and empty slices and maps become nil. Metrics and intermediate values
// are maps on the wire and come back in order of name, so those of an encoded
// request must have different names ([study.InvalidError] otherwise). What the
// types of the wire cannot hold saturates and is refused by the service as it
// would be in the process.
//
// Decoding judges form only: enums that this version does not know, malformed
// resource names, times out of range and spaces that do not parse are refused
// with [study.InvalidError] or space errors. Whether content makes sense is the
// service's to say.
//
// # Errors
//
// [Status] turns an error of a service into a canonical gRPC status with a
// google.rpc.ErrorInfo, and [ReadError] turns it back.
// tuner.CodeOf is the same before and after, for every error. What may hold paths or
// other internals of the server does not travel: see [Status].
package wire
