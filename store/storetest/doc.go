// Package storetest is the one suite that every [store.Store] passes, and a
// source of events for tests.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness { … })
//	}
//
// The suite states the contract of package store as tests: what was
// acknowledged is there, whole, in order and unshared; what was refused left no
// trace; ids are never used again; whoever loses a race is told so. It ends
// with random commands against a model of a few maps, closing and reopening
// the store in between if it is durable. What a store does when its medium
// fails is for its own tests to say.
package storetest
