package propose

import (
	"math"

	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// history is the digest of a View that a space-filling proposer needs.
type history struct {
	followed int                 // trials digested
	next     uint64              // number of the point or cell after the last one suggested
	seen     map[uint64]struct{} // fingerprints of all configurations, nil if not wanted
	first    uint64              // fingerprint to look for where seen is nil, 0 for none
	found    bool                // whether a trial has first
}

// rare is the number of configurations from which on repetitions are too rare to look for.
// Among 10⁵ points there is one with probability 0.5%.
const rare = 1 << 40

// newHistory returns the empty digest. It stores configurations where they are likely to
// repeat.
func newHistory(sp *space.Space) history {
	certain := 1.0 // combinations of parameters that are always active
	for _, a := range sp.Axes() {
		switch {
		case a.Conditional:
		case a.Levels == 0:
			certain = math.Inf(1)
		default:
			certain *= float64(a.Levels)
		}
	}
	if certain >= rare {
		return history{}
	}
	return history{seen: make(map[uint64]struct{})}
}

// follow digests the trials that are new in v.
func (h *history) follow(v View) {
	if v.Trials() < h.followed { // not the history that was digested, see Proposer
		h.followed, h.next, h.found = 0, 0, false
		clear(h.seen)
	}
	for t := range v.All(h.followed) {
		if t.Origin == study.OriginSuggested && t.Suggestion.Phase == PhaseStart {
			h.next = t.Suggestion.Seed + 1
		}
		switch {
		case h.seen != nil:
			h.seen[model.Fingerprint(t.Config)] = struct{}{}
		case h.first != 0 && !h.found:
			h.found = model.Fingerprint(t.Config) == h.first
		}
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
	if b.history.seen == nil {
		return b.history.found && model.Fingerprint(c) == b.history.first
	}
	f := model.Fingerprint(c)
	_, before := b.history.seen[f]
	_, now := b.added[f]
	return before || now
}

func (b batch) add(c space.Config) {
	if b.history.seen == nil {
		return
	}
	f := model.Fingerprint(c)
	if _, before := b.history.seen[f]; !before { // distinct counts each once
		b.added[f] = struct{}{}
	}
}

// distinct is the number of different configurations.
func (b batch) distinct() float64 { return float64(len(b.history.seen) + len(b.added)) }
