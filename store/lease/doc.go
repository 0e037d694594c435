// Package lease makes a process one of the servers that share a [store.Shared]. Each
// study belongs to one server at a time.
//
//	m, err := lease.Join(ctx, shared, lease.Options{Address: "tuner-1.example.org:7070"})
//	…
//	t := engine.Open(m, options)
//
// # The lease of a server
//
// [Join] registers the server and renews its lease every fifth of [Options.TTL]. The
// store's clock decides when a lease is over. The server itself counts its lease from the
// moment before it sent the last successful renewal, and for four fifths of the TTL only.
// So a server knows before all others that its lease is over, see [Member.Alive]. It
// measures that time by a clock that continues while the machine is suspended, where the
// system has one. Other servers' clocks do not matter.
//
// A lease that is over is not lost. While no other server has buried this one, the next
// renewal begins it anew, and the studies stay here. So when a database was away, all
// servers continue.
//
// # Burying
//
// A server that wants a study whose owner's lease is over buries the owner first. It does
// so only if it has itself been alive without a gap for a TTL. Otherwise the first server
// that reaches a database after an outage would bury the others. A buried server learns
// it from its next renewal, see [Member.Buried], and must end.
//
// # Studies
//
// [Member.Acquire] claims a study, and every commit and deletion is made under the claim.
// A store refuses them with a [store.FencedError] if another claim was made since.
// [Member.Close] gives all studies back at once, by removing the server.
package lease
