package gp

import (
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// points holds the different inputs of a sparse posterior, in the order of their
// arrival, with the observations at each. Points of a fork continue those of its
// origin, which they do not change.
type points struct {
	origin  *points
	before  int         // points of origin
	x       kernel.Rows // further ones, nil for none
	data    []float64   // of x, where it is dense and can grow in place
	stats   []stat
	changed map[int]*stat    // of origin's points, those that have changed
	places  map[string]int32 // of further ones, by the key of the row
	total   int              // observations
}

// stat holds the observations of one point.
type stat struct {
	n       float64 // observations without noise of their own
	scatter float64 // Σ (y − mean)² of their targets
	mean    float64 // of their targets
	own     []ownNoise
	coarse  bool
	// weight and resid are the current W and r̄ in V and b, where W = 1/(v + res) or
	// 1/v for the variance v of ȳ given the process.
	weight, resid float64
}

// ownNoise is an observation with a noise variance of its own.
type ownNoise struct{ y, variance float64 }

// observations returns the number of observations.
func (s *stat) observations() float64 { return s.n + float64(len(s.own)) }

// add adds a target.
func (s *stat) add(y, own float64) {
	if own != 0 {
		s.own = append(slices.Clip(s.own), ownNoise{y, own})
		return
	}
	s.n++
	d := y - s.mean
	s.mean += d / s.n
	s.scatter += d * (y - s.mean)
}

// variance returns that of ȳ given the process, 1/Σ 1/(ξ² + own), with further pulls
// counted. There must be an observation or a pull.
func (s *stat) variance(noise float64, pulls int) float64 {
	n := s.n + float64(pulls)
	switch {
	case len(s.own) == 0:
		return noise / n
	case n == 0 && len(s.own) == 1:
		return noise + s.own[0].variance
	}
	sum := n / noise
	for _, o := range s.own {
		sum += 1 / (noise + o.variance)
	}
	return 1 / sum
}

// target returns ȳ, the mean of all targets weighted by their precisions.
func (s *stat) target(noise float64) float64 {
	if len(s.own) == 0 {
		return s.mean
	}
	sum, weights := s.n/noise*s.mean, s.n/noise
	for _, o := range s.own {
		w := 1 / (noise + o.variance)
		sum, weights = sum+w*o.y, weights+w
	}
	if s.n == 0 && len(s.own) == 1 {
		return s.own[0].y
	}
	return sum / weights
}

// fork returns points that continue from p, which must not change meanwhile.
func (p *points) fork() *points {
	return &points{origin: p, before: p.len(), total: p.total}
}

func (p *points) len() int { return p.before + len(p.stats) }

// get returns the statistics of point i, to read only.
func (p *points) get(i int) *stat {
	if i >= p.before {
		return &p.stats[i-p.before]
	}
	if s, ok := p.changed[i]; ok {
		return s
	}
	return p.origin.get(i)
}

// edit returns the statistics of point i, to change.
func (p *points) edit(i int) *stat {
	if i >= p.before {
		return &p.stats[i-p.before]
	}
	if s, ok := p.changed[i]; ok {
		return s
	}
	s := *p.origin.get(i)
	if p.changed == nil {
		p.changed = map[int]*stat{}
	}
	p.changed[i] = &s
	return &s
}

// find returns the point of row i of x, and the key by which equal rows are recognised.
// The key is empty where nothing is merged.
func (p *points) find(x kernel.Rows, i int) (point int, key string, found bool) {
	key, known := kernel.RowKey(x, i)
	if !known {
		return 0, "", false
	}
	limit := p.len()
	for q := p; q != nil; q = q.origin {
		if at, ok := q.places[key]; ok && int(at) < limit {
			return int(at), key, true
		}
		limit = q.before
	}
	return 0, key, false
}

// reserve makes room for n more points of the kind of x.
func (p *points) reserve(x kernel.Rows, n int) {
	p.stats = slices.Grow(p.stats, n)
	if x, ok := x.(*kernel.Points[float64]); ok {
		p.data = slices.Grow(p.data, n*x.Dim())
	}
	if p.places == nil {
		p.places = make(map[string]int32, n)
	}
}

// push makes row i of x the next point.
func (p *points) push(x kernel.Rows, i int, key string) (int, error) {
	at := p.len()
	if err := p.append(x, i); err != nil {
		return 0, err
	}
	if key != "" {
		if p.places == nil {
			p.places = map[string]int32{}
		}
		p.places[key] = int32(at)
	}
	p.stats = append(p.stats, stat{})
	return at, nil
}

// append adds row i of x. Rows that were returned before do not change.
func (p *points) append(x kernel.Rows, i int) error {
	if v, ok := x.(*kernel.Points[float64]); ok {
		p.data = append(p.data, v.Row(i)...)
		p.x = kernel.NewPoints(len(p.stats)+1, v.Dim(), p.data)
		return nil
	}
	row := x.Slice(i, i+1)
	if p.x == nil {
		p.x = row
		return nil
	}
	var err error
	p.x, err = p.x.Concat(row)
	return err
}

// rows returns all inputs, u×d, or nil if there are none. For a fork they are copied.
func (p *points) rows() kernel.Rows {
	switch {
	case p.origin == nil || p.before == 0:
		return p.x
	case p.x == nil:
		return p.origin.rows()
	}
	all, err := p.origin.rows().Slice(0, p.before).Concat(p.x)
	if err != nil {
		panic("gp: points of different kinds: " + err.Error()) // they were checked
	}
	return all
}
