package bandit_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/internal/problems"
)

// peer is the output of testdata/peer/bkb.py.
type peer struct {
	All         float64 // ms of a step, draws included
	Step, Quick float64 // ms of steps without a draw at the end, as median and 5 % quantile
	M           int
	Regret      float64
}

// numpy runs the peer on the environment's arms.
func numpy(b *testing.B, env *problems.Environment, steps string) peer {
	b.Helper()
	python := os.Getenv("BKB_PYTHON")
	if python == "" {
		b.Skip("set BKB_PYTHON to a python3 with numpy and scipy")
	}
	path := filepath.Join(b.TempDir(), "arms")
	var raw []byte
	for _, v := range slices.Concat(env.Points, env.Values) {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.CommandContext(b.Context(), python, "testdata/peer/bkb.py", path, "5", "0.3", "0.1", steps, "1")
	c.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS="+os.Getenv("BKB_THREADS"), "OMP_NUM_THREADS="+os.Getenv("BKB_THREADS"))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		b.Fatal(err)
	}
	var p peer
	if err := json.Unmarshal(out, &p); err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkPeer is a step of BKB on Ackley-5 with 20 000 arms beside the same algorithm
// by NumPy in the same run. It covers all steps up to t = 1000, and a step there. This
// package uses one goroutine, and NumPy uses BKB_THREADS threads.
func BenchmarkPeer(b *testing.B) {
	env, arms := ackley(20000, 1)
	other := numpy(b, env, "1000")
	b.Run("way", func(b *testing.B) {
		var p *bandit.BKB
		var account *problems.Regret
		for b.Loop() {
			c := bkbConfig(ackleyConfig())
			c.Workers, c.Seed = 1, 0 // as many inducing points as NumPy has with its seed
			p = must(bandit.NewBKB(c, arms))
			account = env.Account()
			run(b, p, env, account, 1000)
		}
		ms := b.Elapsed().Seconds() * 1e3 / float64(b.N) / 1000
		b.ReportMetric(ms, "ms/step")
		b.ReportMetric(other.All/ms, "numpy/step")
		b.ReportMetric(float64(must(p.Best()).InducingPoints), "m")
		b.ReportMetric(float64(other.M), "numpy-m")
		b.ReportMetric(account.Relative(), "regret")
		b.ReportMetric(other.Regret, "numpy-regret")
	})
	b.Run("step", func(b *testing.B) {
		c := bkbConfig(ackleyConfig())
		c.Workers, c.Seed = 1, 0
		p, account := must(bandit.NewBKB(c, arms)), env.Account()
		run(b, p, env, account, 1000)
		var spent []time.Duration
		for b.Loop() {
			start := time.Now()
			run(b, p, env, account, 1)
			spent = append(spent, time.Since(start))
		}
		slices.Sort(spent)
		middle, quick := spent[len(spent)/2].Seconds()*1e3, spent[len(spent)/20].Seconds()*1e3
		b.ReportMetric(middle, "median-ms")
		b.ReportMetric(other.Step/middle, "numpy/median")
		b.ReportMetric(other.Quick/quick, "numpy/quick") // of the quickest twentieth
		b.ReportMetric(float64(must(p.Best()).InducingPoints), "m")
	})
}
