package bandit

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/sketch"
)

// Sparsity says how the inducing points of a sparse policy are chosen.
type Sparsity struct {
	// Oversampling is q̄ ≥ 1, or 0 for 4. An input pulled n_i times becomes an inducing point
	// with probability min(1, q̄ n_i σ̃²(x_i)/λ). Theorem 20 of Carratino (2020) asks for 6α
	// log(4T/δ)/ε². +Inf takes all inputs.
	Oversampling float64
	// Threshold is C > 0, or 0 for 1. The inducing points are drawn again when Σ σ̃²(x_s)/λ of the
	// pulls since the last draw exceeds it, or when there are more pulls by a quarter. Values between 1
	// and 4 are good. BBKB has its own rule.
	Threshold float64
	// FromScratch draws the inducing points again after every reward, as in Algorithm 5 of Carratino
	// (2020).
	FromScratch bool
}

// Validate reports all faults at once.
func (s Sparsity) Validate() error {
	var errs []error
	if s.Oversampling != 0 && !(s.Oversampling >= 1) {
		errs = append(errs, valueError("Oversampling", -1, s.Oversampling, "≥ 1, or 0"))
	}
	if s.Threshold != 0 {
		errs = append(errs, positive("Threshold", s.Threshold))
	}
	return errors.Join(errs...)
}

func (s Sparsity) withDefaults() Sparsity {
	s.Oversampling = cmp.Or(s.Oversampling, 4)
	s.Threshold = cmp.Or(s.Threshold, 1)
	return s
}

// sparse is the common part of BKB, BBKB and their variants. It has the sparse
// posterior of the arms and draws its inducing points.
type sparse struct {
	base
	sparsity Sparsity
	post     *gp.Sparse
	exact    bool    // σ̃ = σ, because all inputs are inducing points
	chosen   []int   // the points from which the dictionary was drawn
	settled  float64 // Σ σ̃²/λ of the pulls before the last draw that changed nothing
	drawn    int     // the number of pulls at the last draw
	fault    error   // of the last draw, which left the inducing points as they were
}

func newSparse(cfg Config, sp Sparsity, arms kernel.Rows, lazy bool) (sparse, error) {
	if err := errors.Join(cfg.Validate(), sp.Validate()); err != nil {
		return sparse{}, err
	}
	b, err := newBase(cfg, arms)
	if err != nil {
		return sparse{}, err
	}
	post, err := gp.NewSparse(b.cfg.Kernel, arms.Slice(0, 0), gp.Data{}, gp.SparseOptions{
		NoiseVariance: b.cfg.NoiseVariance, Mean: b.cfg.Mean, Workers: b.cfg.Workers,
	})
	if err != nil {
		return sparse{}, err
	}
	return sparse{base: b, sparsity: sp.withDefaults(), post: post}, post.SetArms(arms, lazy)
}

func (p *sparse) Steps() int { return p.post.Len() + p.post.Pending() }

// Posterior returns the posterior of the decisions. The caller must not change it, and
// it is valid until the next change.
func (p *sparse) Posterior() *gp.Sparse { return p.post }

// resparsify draws the inducing points among the pulled inputs and computes the
// posterior again. If the draw has the same inducing points as before, it calls same instead,
// unless that is nil. Draw n has a stream of its own.
func (p *sparse) resparsify(same func()) {
	idx, err := p.draw()
	if err == nil && same != nil && p.chosen != nil && slices.Equal(idx, p.chosen) {
		same()
		return
	}
	if err == nil {
		if err = p.post.Resparsify(p.dictionary(idx)); err == nil {
			p.chosen, p.settled = idx, 0
		}
	}
	p.fault = err
}

// dictionary returns points that were pulled.
func (p *sparse) dictionary(idx []int) kernel.Rows {
	if points := p.post.Points(); points != nil {
		return points.Select(idx)
	}
	return p.arms.Slice(0, 0)
}

// draw is lines 6 to 10 of Algorithm 5, with counts in place of repetitions, and p̃ at
// most 1. It returns the points chosen.
func (p *sparse) draw() ([]int, error) {
	keep, n, total, pending := []int{}, []int(nil), 0, p.post.PendingCounts()
	for i, c := range p.post.Counts() {
		if k := int(c) + pending[i]; k > 0 { // not taken back
			keep, n, total = append(keep, i), append(n, k), total+k
		}
	}
	if math.IsInf(p.sparsity.Oversampling, 1) || len(keep) == 0 {
		return keep, nil
	}
	variances, all := make([]float64, len(keep)), p.post.PointVariances()
	for j, i := range keep {
		variances[j] = all[i]
	}
	rng := stream.New(stream.Derive(p.cfg.Seed, "bandit inducing points", uint64(total)))
	sampler := sketch.PosteriorVariance{Variances: variances, Counts: n, Oversampling: p.sparsity.Oversampling}
	d, err := sampler.Sample(context.Background(), p.cfg.Kernel, kernel.FromRows(p.post.Points().Select(keep)),
		sketch.LambdaOfNoise(p.cfg.NoiseVariance, total), rng)
	if err != nil {
		return nil, err
	}
	idx := make([]int, d.Len())
	for j, i := range d.Indices {
		idx[j] = keep[i]
	}
	return idx, nil
}
