package bo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/bench/bbob"
	"github.com/bkbtuner/bkb/tuner/space"
)

// noiseless has BBOB's functions, instance 1 of COCO.
//
// The eight of the standard tier were chosen before any result was seen. There are one or
// two of each of BBOB's groups, without the sphere. They are Rastrigin (f3), the attractive
// sector (f6), Rosenbrock (f8), the rotated ellipsoid (f10), rotated Rastrigin (f15),
// Schaffer's F7 (f17), Schwefel (f20) and Gallagher's 101 peaks (f21).
var noiseless = Suite{
	Name: "bbob", Title: "BBOB", Source: "Hansen et al. 2009, INRIA RR-6829, instance 1 of COCO", Log: true,
	Problems: bbobProblems(),
}

// standardBBOB is the functions of the standard tier.
var standardBBOB = []int{3, 6, 8, 10, 15, 17, 20, 21}

func bbobProblems() []Listed {
	var out []Listed
	for _, d := range []int{2, 5, 10, 20} {
		for function := 1; function <= bbob.Functions; function++ {
			tier := Full
			switch {
			case d <= 10 && slices.Contains(standardBBOB, function):
				tier = Standard
			}
			if d == 2 && (function == 8 || function == 15) {
				tier = Smoke
			}
			out = append(out, bbobProblem(tier, function, d, noNoise))
		}
	}
	return out
}

// noisy has BBOB's functions with two kinds of noise, both around the noiseless value, from
// which regret is computed.
//
//   - gauss is the Gaussian model of the noisy BBOB (Hansen et al. 2009, INRIA
//     RR-6869) in its severe setting: f − f^opt is multiplied by exp(N(0, 1)).
//     The noiseless value is the median of measured values, and noise vanishes
//     towards the optimum.
//   - add adds normal noise. Its standard deviation is a twentieth of the distance
//     between the minimum and the median of uniform points, the same everywhere.
var noisy = Suite{
	Name: "bbob-noisy", Title: "BBOB with noise", Source: "Hansen et al. 2009, INRIA RR-6829 and RR-6869, instance 1 of COCO", Log: true,
	Problems: noisyProblems(),
}

// noisyProblems lists the functions of the noisy BBOB, f1, f7, f8, f10, f14, f17, f19 and
// f21, in the tier full. Two of them are also in standard.
func noisyProblems() []Listed {
	var out []Listed
	for _, d := range []int{2, 5, 10, 20} {
		for _, function := range []int{1, 7, 8, 10, 14, 17, 19, 21} {
			tier := Full
			if d == 5 && (function == 8 || function == 17) {
				tier = Standard
			}
			out = append(out, bbobProblem(tier, function, d, multiplied), bbobProblem(tier, function, d, added))
		}
	}
	return out
}

// noise is the noise that is applied to the values of a function.
type noise string

const (
	noNoise    noise = ""
	multiplied noise = "gauss"
	added      noise = "add"
)

// addedNoise is the standard deviation of added noise, in units of median − best.
const addedNoise = 0.05

func bbobProblem(tier Tier, function, d int, n noise) Listed {
	if n == noNoise {
		return bbobInstance("bbob", tier, function, d, 1)
	}
	name := fmt.Sprintf("bbob-noisy/f%02d-d%02d-i1-%s", function, d, n)
	return Listed{name, tier, func(string) (Problem, error) {
		f, err := bbob.New(function, d, 1)
		if err != nil {
			return nil, err
		}
		b, err := newBox(name, slices.Repeat([]float64{-bbob.Bound}, d), slices.Repeat([]float64{bbob.Bound}, d), f.Value, f.Minimum())
		return &withNoise{b, n}, err
	}}
}

// bbobInstance is a function of BBOB without noise, as a problem of a suite.
func bbobInstance(suite string, tier Tier, function, d, instance int) Listed {
	name := fmt.Sprintf("%s/f%02d-d%02d-i%d", suite, function, d, instance)
	return Listed{name, tier, func(string) (Problem, error) {
		f, err := bbob.New(function, d, instance)
		if err != nil {
			return nil, err
		}
		return newBox(name, slices.Repeat([]float64{-bbob.Bound}, d), slices.Repeat([]float64{bbob.Bound}, d), f.Value, f.Minimum())
	}}
}

// withNoise is a function on a box with noise.
type withNoise struct {
	*formula
	noise noise
}

// Evaluate implements [Problem].
func (p *withNoise) Evaluate(c space.Config, rng *rand.Rand) (float64, bool) {
	v := p.True(c)
	switch p.noise {
	case multiplied:
		return p.best + (v-p.best)*math.Exp(rng.NormFloat64()), true
	case added:
		return v + addedNoise*(p.median-p.best)*rng.NormFloat64(), true
	}
	return v, true
}
