package bo

import (
	"errors"
	"io/fs"
	"math"
	"slices"
)

// results are the existing runs of a comparison.
type results struct {
	plan  *plan
	suite []*suiteResults
}

// suiteResults are the runs of one suite.
type suiteResults struct {
	Suite
	plan *plan
	runs map[cell]map[string]*Run // by the optimiser's name
}

// cell is the unit in which optimisers are paired.
type cell struct {
	problem string
	seed    uint64
}

// read reads the planned runs that exist. The error is a [*FileError].
func (p *plan) read(out string) (*results, error) {
	r := &results{plan: p}
	for _, s := range p.suites {
		have := &suiteResults{s, p, make(map[cell]map[string]*Run)}
		for _, l := range s.Problems {
			for _, k := range p.contestants {
				for n := range p.seedsOf(k) {
					seed := p.seed(n)
					run, err := readRun(out, l.Name, k.Name, seed)
					if errors.Is(err, fs.ErrNotExist) {
						continue
					} else if err != nil {
						return nil, err
					}
					at := cell{l.Name, seed}
					if have.runs[at] == nil {
						have.runs[at] = make(map[string]*Run)
					}
					have.runs[at][k.Name] = run
				}
			}
		}
		if len(have.runs) > 0 {
			r.suite = append(r.suite, have)
		}
	}
	return r, nil
}

// names returns the contestants of certain kinds that have runs of the suite, in their
// order.
func (s *suiteResults) names(p *plan, kinds ...Kind) []string {
	var out []string
	for _, k := range p.contestants {
		if !slices.Contains(kinds, k.Kind) {
			continue
		}
		for _, runs := range s.runs {
			if runs[k.Name] != nil {
				out = append(out, k.Name)
				break
			}
		}
	}
	return out
}

// cells returns the cells in which all the named optimisers have n trials, or reached the
// end of the space before, ordered by problem and seed.
func (s *suiteResults) cells(n int, names ...string) []cell {
	var out []cell
	for _, l := range s.Problems {
		for seed := range s.plan.seeds {
			at := cell{l.Name, s.plan.seed(seed)}
			if !slices.ContainsFunc(names, func(name string) bool { return !s.runs[at][name].has(n) }) {
				out = append(out, at)
			}
		}
	}
	return out
}

// has reports whether a run, which may be nil, can be judged after n trials.
func (r *Run) has(n int) bool {
	return r != nil && (len(r.Trials) >= n || r.Ended == ErrEnded.Error())
}

// farRegret is the largest normalised regret that counts. An optimiser without a successful
// trial has it.
const farRegret = 10

// nearRegret is the least regret that counts where logarithms are taken.
const nearRegret = 1e-8

// regret returns the normalised regret of an optimiser in a cell after n trials, at most
// farRegret.
func (s *suiteResults) regret(at cell, name string, n int, by choice) float64 {
	return min(s.runs[at][name].regret(n, by), farRegret)
}

// loss is the number that means are taken of. It is the regret, or its log10 where the
// suite says so.
func (s *suiteResults) loss(at cell, name string, n int) float64 {
	v := s.regret(at, name, n, measured)
	if s.Log {
		return math.Log10(max(v, nearRegret))
	}
	return v
}

// meanRanks returns the mean rank of each of the named by regret after n trials. It
// averages over each problem's cells first, so that all problems have the same weight.
func (s *suiteResults) meanRanks(cells []cell, names []string, n int, by choice) []float64 {
	perProblem := make(map[string][][]float64)
	for _, at := range cells {
		v := make([]float64, len(names))
		for i, name := range names {
			v[i] = s.regret(at, name, n, by)
		}
		perProblem[at.problem] = append(perProblem[at.problem], ranks(v))
	}
	out := make([]float64, len(names))
	for _, l := range s.Problems {
		for _, r := range perProblem[l.Name] {
			for i := range out {
				out[i] += r[i] / float64(len(perProblem[l.Name])) / float64(len(perProblem))
			}
		}
	}
	return out
}

// differences returns loss(a) − loss(b) after n trials for each problem's cells, in
// the order of problems, and the names of these.
func (s *suiteResults) differences(a, b string, n int) (problems []string, d [][]float64) {
	for _, at := range s.cells(n, a, b) {
		if len(problems) == 0 || problems[len(problems)-1] != at.problem {
			problems, d = append(problems, at.problem), append(d, nil)
		}
		d[len(d)-1] = append(d[len(d)-1], s.loss(at, a, n)-s.loss(at, b, n))
	}
	return problems, d
}

// means returns the mean of each group.
func means(groups [][]float64) []float64 {
	out := make([]float64, len(groups))
	for i, g := range groups {
		for _, v := range g {
			out[i] += v / float64(len(g))
		}
	}
	return out
}

// grandMean returns the mean of the groups' means.
func grandMean(groups [][]float64) float64 { return means([][]float64{means(groups)})[0] }
