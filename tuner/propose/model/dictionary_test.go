package model

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// crowded returns a history of n results like that of a search, 15 % anywhere in the cube
// and the rest near one point.
func crowded(n, d int, rng *rand.Rand) []Result {
	list := make([]Result, n)
	for i := range list {
		x := make([]float64, d)
		sd, sum := 0.02+0.08*rng.Float64(), 0.0
		for c := range x {
			if x[c] = rng.Float64(); i%20 >= 3 {
				x[c] = min(max(0.4+sd*rng.NormFloat64(), 0), 1)
			}
			sum += (x[c] - 0.4) * (x[c] - 0.4)
		}
		list[i] = Result{
			Trial: i, Feasible: true, X: x, End: study.Position(i + 1),
			Y: []Measure{{Value: math.Cos(3*sum) + 0.03*rng.NormFloat64(), StdErr: math.NaN(), Count: 1}},
		}
	}
	return list
}

// surfaceOf returns a surface that could have been fitted to crowded results.
func surfaceOf(d int) *Surface {
	return &Surface{Target: Target{Spread: 1, Scale: 1}, Theta: append([]float64{1}, slices.Repeat([]float64{0.5}, d)...), Noise: 1e-3}
}

// cube returns a space of six continuous parameters.
func cube(t *testing.T) *space.Space {
	const one = `": {"type": "float", "low": 0, "high": 1}`
	return labtest.Parse(t, `{"a`+one+`, "b`+one+`, "c`+one+`, "d`+one+`, "e`+one+`, "f`+one+`}`)
}

// Of 20,000 results BLESS reads less than a tenth and fills the room for inducing points.
// Its residuals are smaller than those of as many uniformly drawn points. The draw is a
// function of the results and the seed.
func TestLongHistoriesAreDrawnByBLESS(t *testing.T) {
	const n, limit = 20_000, 256
	sp := cube(t)
	for seed := range uint64(racetest.Size(1, 3)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		list := crowded(n, 6, rng)
		x := kernel.NewPoints[float64](500, 6, nil)
		for i := range x.Len() {
			copy(x.Row(i), list[rng.IntN(n)].X)
			if i%2 == 0 {
				for c := range 6 {
					x.Row(i)[c] = rng.Float64()
				}
			}
		}
		residual := func(uniform bool) (float64, *Surface) {
			s, d := surfaceOf(6), builder{space: sp, seed: seed, options: &Options{Cap: limit, Sampler: AutoSampler}}
			if err := d.choose(context.Background(), list, 0, s, nil); err != nil {
				t.Fatal(err)
			}
			if uniform { // as many, with the best among them
				best := newHistory(list, 0, s, nil).best(list, 0)
				for i := range s.Dictionary {
					if s.Dictionary[i] = rng.IntN(n); i < len(best) {
						s.Dictionary[i] = list[best[i].of].Trial
					}
				}
			}
			p, err := s.posterior(sp, list, 0, limit)
			if err != nil {
				t.Fatal(err)
			}
			_, res, err := p.Embed(x)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, r := range res {
				sum += r / float64(len(res))
			}
			return sum, s
		}
		bless, s := residual(false)
		uniform, _ := residual(true)
		_, again := residual(false)
		t.Logf("seed %d: BLESS read %d of %d rows, %d points at λ = %.2g by %d steps, d_eff %.0f; mean residual %.4f, uniform %.4f",
			seed, s.Draw.Read, s.Draw.Rows, len(s.Dictionary), s.Draw.Lambda, len(s.Draw.Path), s.Dimension, bless, uniform)
		if s.Draw.Sampler != BLESSSampler || s.Draw.Rows != n || s.Draw.Read >= n/10 || len(s.Draw.Path) < 2 {
			t.Errorf("seed %d: drawn by %+v", seed, s.Draw)
		}
		if room := limit * 3 / 4; len(s.Dictionary) > room || len(s.Dictionary) < room*9/10 || !s.Capped {
			t.Errorf("seed %d: %d inducing points in room for %d, capped %v", seed, len(s.Dictionary), room, s.Capped)
		}
		if !(bless < uniform) {
			t.Errorf("seed %d: mean residual %v, by uniform sampling %v", seed, bless, uniform)
		}
		if !slices.Equal(s.Dictionary, again.Dictionary) || !slices.Equal(s.Draw.Path, again.Draw.Path) {
			t.Errorf("seed %d: the same history gives other inducing points", seed)
		}
	}
}

// Each sampler keeps within the room, includes the best results, and is named in the draw.
// A history that needs no draw has all its inputs.
func TestSamplers(t *testing.T) {
	const n, limit = 600, 64
	sp := cube(t)
	list := crowded(n, 6, rand.New(rand.NewPCG(5, 3)))
	for sampler, want := range map[string]string{
		AutoSampler: RLSSampler, RLSSampler: RLSSampler, BLESSSampler: BLESSSampler,
	} {
		s, d := surfaceOf(6), builder{space: sp, seed: 1, options: &Options{Cap: limit, Sampler: sampler}}
		if err := d.choose(context.Background(), list, 0, s, nil); err != nil {
			t.Fatal(err)
		}
		if s.Draw.Sampler != want || s.Draw.Rows != n || s.Draw.Read < len(s.Dictionary)-bestAlways || s.Draw.Read > n {
			t.Errorf("%s: drawn by %+v", sampler, s.Draw)
		}
		if len(s.Dictionary) > limit*3/4 || len(s.Dictionary) < limit/2 {
			t.Errorf("%s: %d inducing points", sampler, len(s.Dictionary))
		}
		for _, m := range newHistory(list, 0, s, nil).best(list, 0) {
			if !slices.Contains(s.Dictionary, m.of) {
				t.Errorf("%s: result %d, one of the best, is no inducing point", sampler, m.of)
			}
		}
		few := surfaceOf(6)
		if err := d.choose(context.Background(), list[:40], 0, few, nil); err != nil {
			t.Fatal(err)
		}
		if few.Draw.Sampler != AllSampler || len(few.Dictionary) != 40 || few.Capped {
			t.Errorf("%s: of 40 results %d inducing points, drawn by %+v", sampler, len(few.Dictionary), few.Draw)
		}
	}
}
