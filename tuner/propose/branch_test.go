package propose

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// random and sobol give a branch with few configurations the share that points have in it, beside
// a continuous branch, a large finite one, and others, and try all of its configurations.
func TestFiniteBranchKeepsItsShare(t *testing.T) {
	for what, k := range map[string]struct {
		space string
		share float64 // of the trials with m = none or, if there is, few
		count int     // configurations there
	}{
		"continuous": {`{"m": {"type": "categorical", "values": ["net", "none"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"m": "net"}}}`, 0.5, 1},
		"finite":     {`{"m": {"type": "categorical", "values": ["net", "none"]}, "n": {"type": "int", "low": 1, "high": 1000, "when": {"m": "net"}}}`, 0.5, 1},
		"several": {`{"m": {"type": "categorical", "values": ["net", "few", "lin"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"m": "net"}},
			"d": {"type": "int", "low": 1, "high": 4, "when": {"m": "few"}}, "k": {"type": "ordinal", "values": [1, 2], "when": {"m": "few"}}}`, 1.0 / 3, 8},
	} {
		for _, name := range []string{Random, Sobol} {
			const n = 120
			spec := labtest.SpecOf(labtest.Parse(t, k.space), 3)
			l, p := newLab(t, spec), must(t, study.Component{Name: name}, spec)
			trials, different := 0, make(map[string]bool)
			for l.S.Trials() < n {
				l.ask(p, 4)
			}
			for trial := range l.S.All(0) {
				if m, _ := trial.Config.Get("m"); m == space.String("none") || m == space.String("few") {
					trials++
					different[trial.Config.String()] = true
				}
			}
			if share := float64(trials) / n; share < k.share-0.13 || share > k.share+0.13 || len(different) != k.count {
				t.Errorf("%s, %s: %d of %d trials are in the branch, with %d of %d configurations", what, name, trials, n, len(different), k.count)
			}
		}
	}
}

// A study that begins with trials of another one, such as a generation of define-by-run, goes on
// with Sobol' points. It does not try the centre of its new parameters.
func TestStartJoinsAddedTrials(t *testing.T) {
	plain := labtest.Parse(t, labtest.Square)
	spec := labtest.SpecOf(plain, 7)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
	l.ask(p, 4)
	for added := range 4 {
		other, q := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
		for i := range added {
			other.Do(study.Add{Config: other.Decode(0.1, float64(i)/4), Outcome: labtest.Completed(spec, 1)})
		}
		if added == 3 {
			other.Do(study.Enqueue{Config: other.Decode(0.9, 0.9)}) // does not count
		}
		for i := added; i < 4; i++ {
			want, _ := l.S.Trial(i)
			got := other.propose(q, 1).Suggestions[0]
			if !got.Config.Equal(want.Config) || got.Seed != uint64(i) {
				t.Errorf("%d added trials: suggestion %d is %v of point %d, want %v", added, i, got.Config, got.Seed, want.Config)
			}
			other.Start(got)
		}
	}
}
