package propose

import (
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// history is the digest of a View that a space-filling proposer needs.
type history struct {
	followed int                 // trials digested
	next     uint64              // number of the point or cell after the last one suggested
	added    uint64              // trials that were added
	seen     map[uint64]struct{} // fingerprints of all configurations
}

// follow digests the trials that are new in v.
func (h *history) follow(v View) {
	if h.seen == nil || v.Trials() < h.followed { // not the history that was digested, see Proposer
		*h = history{seen: make(map[uint64]struct{})}
	}
	for t := range v.All(h.followed) {
		switch {
		case t.Origin == study.OriginSuggested && t.Suggestion.Phase == study.PhaseStart:
			h.next = t.Suggestion.Seed + 1
		case t.Origin == study.OriginAdded:
			h.added++
		}
		h.seen[model.Fingerprint(t.Config)] = struct{}{}
	}
	h.followed = v.Trials()
}

// batch is what one Propose adds to a history. It is dropped if the caller drops the
// suggestions.
type batch struct {
	history *history
	added   map[uint64]struct{}
}

func (h *history) batch() batch { return batch{h, make(map[uint64]struct{})} }

// has reports whether c was suggested, enqueued or added before.
func (b batch) has(c space.Config) bool {
	f := model.Fingerprint(c)
	_, before := b.history.seen[f]
	_, now := b.added[f]
	return before || now
}

func (b batch) add(c space.Config) { b.added[model.Fingerprint(c)] = struct{}{} }
