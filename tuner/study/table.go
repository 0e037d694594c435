package study

// table holds the trials by number so that copying it costs little. Copies share chunks of
// pointers until one of them writes. A Trial that may be in a copy is replaced and never changed.
type table struct {
	chunks []*chunk
	n      int
	owner  *byte // owner of the chunks to write, all others are shared and must be cloned first
}

const chunkSize = 256

type chunk struct {
	owner  *byte
	whole  bool // all its trials belong to the owner, and none is in a copy
	trials [chunkSize]*Trial
}

// at returns trial i, which must exist. Do not change it.
func (t *table) at(i int) *Trial { return t.chunks[i/chunkSize].trials[i%chunkSize] }

// set replaces trial i, or appends it if i is the number of trials.
func (t *table) set(i int, trial Trial) {
	if t.owner == nil {
		t.owner = new(byte)
	}
	if i == t.n {
		if i%chunkSize == 0 {
			t.chunks = append(t.chunks, &chunk{owner: t.owner, whole: true})
		}
		t.n++
	}
	c := t.chunks[i/chunkSize]
	if c.owner != t.owner {
		own := *c
		own.owner, own.whole = t.owner, false
		c = &own
		t.chunks[i/chunkSize] = c
	}
	if at := &c.trials[i%chunkSize]; *at != nil && c.whole {
		**at = trial
	} else {
		own := trial
		*at = &own
	}
}

// share returns a copy that later writes to t do not affect. It costs
// O(trials/chunkSize). The first write to each chunk afterwards costs O(chunkSize).
func (t *table) share() table {
	c := table{chunks: append([]*chunk(nil), t.chunks...), n: t.n}
	t.owner = nil
	return c
}

// changed yields the entries of t that differ from those of an earlier copy of the same table, or
// are new, in order. It costs O(n/chunkSize) and O(chunkSize) for each chunk that was written to.
func (t *table) changed(before *table) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i, c := range t.chunks {
			var old *chunk
			if before != nil && i < len(before.chunks) {
				old = before.chunks[i]
			}
			if c == old && min(t.n, before.n) >= (i+1)*chunkSize {
				continue
			}
			for k := range min(chunkSize, t.n-i*chunkSize) {
				n := i*chunkSize + k
				if (old == nil || n >= before.n || old.trials[k] != c.trials[k]) && !yield(n) {
					return
				}
			}
		}
	}
}
