// Package engine is the service in the process. An [Engine] implements [tuner.Service]
// over a store.
//
// It has three rooms, each above the next.
//
//	engine          all studies: those in use, lists, memory, shares of the processors
//	engine/actor    one study in use: its log, clock and queue, and what suggests
//	engine/view     answers from a snapshot of a study, as pure functions
//
// A call finds the actor of its study, or makes one, which loads the study. An actor that
// has had no call for a while retires, and the next call makes another. If the store does
// not know whether it wrote, the engine ends. Every call then fails with the code
// [tuner.Unknown] until the process is restarted.
//
// A long-lived engine prepares suggestions in the background, for one study at a time and
// only while no ask is running, so that preparation for one study does not delay the asks
// of another. Preparation does not change what an ask gets.
//
// The engine's lock guards the table of actors and is never taken under the lock of a log.
//
// # Costs
//
// A trial in memory takes 1.2 kB with ten parameters and 1.1 kB with eight, including
// its request ids. These are heap sizes after a collection, for 10⁴ and 10⁵ trials read
// from a file. Loading takes about 10 µs a trial. BenchmarkRestart measured the
// anonymous memory of a server with a study of 10⁵ trials of eight parameters, in three
// starts beside other work. It was 216 to 222 MB after a restart and the first ask of
// BKB, at most 240 MB in the seconds after it, and 207 MB after 300 asks and tells.
// Best costs O(trials) for one objective.
package engine

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
)

// Components lists the proposers and pruners of new studies.
func Components() (c tuner.Components) {
	for _, name := range propose.Names() {
		c.Proposers = append(c.Proposers, tuner.Component{Name: name, Options: propose.Options(name)})
	}
	for _, name := range prune.Names() {
		c.Pruners = append(c.Pruners, tuner.Component{Name: name, Options: prune.Options(name)})
	}
	return c
}
