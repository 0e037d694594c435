package study

// table holds the trials by number so that a copy of all of them costs little:
// the chunks of pointers are shared by copies until one writes, and a Trial that
// may be in a copy never changes but is replaced.
type table struct {
	chunks []*chunk
	n      int
	owner  *byte // chunks of another owner are shared and must be cloned to write
}

const chunkSize = 256

type chunk struct {
	owner  *byte
	whole  bool // the owner's from the beginning: none of its trials is in a copy
	trials [chunkSize]*Trial
}

// at returns trial i, which must exist. It must not be changed.
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

// share returns a copy that later writes to t do not reach. It costs
// O(trials/chunkSize), and each chunk written to afterwards once more its size.
func (t *table) share() table {
	c := table{chunks: append([]*chunk(nil), t.chunks...), n: t.n}
	t.owner = nil
	return c
}
