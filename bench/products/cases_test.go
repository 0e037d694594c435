//go:build linux

package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sizes has the number of sizes of a case of each kind.
var sizes = map[string]int{
	"gemm": 3, "cholesky": 1, "trsm": 2, "gram": 3, "direct": 3, "columns": 3, "matern52": 3, "features": 3,
	"bkb": 3, "ucb": 3, "exp": 1, "cos": 1,
}

// A name describes one case completely, its peers exist, and an aim is at least the gate.
func TestTasks(t *testing.T) {
	seen := make(map[string]bool)
	used := make(map[string]bool)
	for _, task := range tasks {
		if seen[task.name] {
			t.Errorf("%s is there twice", task.name)
		}
		seen[task.name] = true
		fields := strings.Fields(task.name)
		used[fields[0]] = true
		if n, known := sizes[fields[0]]; !known || len(fields) != 2+n || fields[1] != "32" && fields[1] != "64" {
			t.Errorf("%q does not say a case: kind, precision, %d sizes", task.name, n)
		}
		if task.aim != 0 && task.aim < task.gate || max(task.gate, task.aim) >= 1 || task.most < 0 {
			t.Errorf("%s: gate %g and aim %g of the peak, at most %g s", task.name, task.gate, task.aim, task.most)
		}
		peers := make(map[string]bool)
		for _, w := range task.wanted {
			if peers[w.peer] || !slices.Contains([]string{"numpy", "sklearn", "torch", "gonum", "one worker"}, w.peer) {
				t.Errorf("%s: the peer %q is there twice, or is none", task.name, w.peer)
			}
			peers[w.peer] = true
			if w.aim != 0 && w.aim < w.gate[0] || w.gate[0] < 0 || w.gate[1] < 0 {
				t.Errorf("%s against %s: gates %g and the aim %g", task.name, w.peer, w.gate, w.aim)
			}
		}
		if task.pair != peers["one worker"] {
			t.Errorf("%s runs on two threads: %t, against one worker: %t", task.name, task.pair, peers["one worker"])
		}
	}
	if len(used) != len(sizes) {
		t.Errorf("%d of %d kinds have a case", len(used), len(sizes))
	}
}

// The gates of products are those that the project set itself.
func TestGatesOfTheDesign(t *testing.T) {
	for name, want := range map[string]struct {
		part           float64
		numpy, sklearn [2]float64
		torch          float64
	}{
		"gram 32 20000 2000 18": {0.45, [2]float64{4, 5}, [2]float64{5, 8}, 2.2},
		"gram 64 20000 2000 18": {0.38, [2]float64{4, 5}, [2]float64{5, 8}, 2.2},
		"gram 32 20000 2000 90": {0.65, [2]float64{1.7, 2.8}, [2]float64{2.7, 4.5}, 1.4},
		"gram 64 20000 2000 90": {0.65, [2]float64{2.2, 3.5}, [2]float64{2.7, 4.5}, 1.4},
	} {
		i := slices.IndexFunc(tasks, func(t task) bool { return t.name == name })
		if i < 0 {
			t.Errorf("there is no %s", name)
			continue
		}
		if tasks[i].gate != want.part {
			t.Errorf("%s: %g of the peak, want %g", name, tasks[i].gate, want.part)
		}
		for peer, gates := range map[string][2]float64{"numpy": want.numpy, "sklearn": want.sklearn, "torch": {want.torch, 0}} {
			j := slices.IndexFunc(tasks[i].wanted, func(w wanted) bool { return w.peer == peer })
			if j < 0 || tasks[i].wanted[j].gate != gates {
				t.Errorf("%s against %s: not the gates %g", name, peer, gates)
			}
		}
	}
}

// The Python side knows every case that is required of it.
func TestPeerKnows(t *testing.T) {
	text, err := os.ReadFile("peer.py")
	if err != nil {
		t.Fatal(err)
	}
	_, builders, ok := strings.Cut(string(text), "builders = {")
	if builders, _, _ = strings.Cut(builders, "\n}\n"); !ok {
		t.Fatal("peer.py has no builders")
	}
	known := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?s)"(numpy|sklearn|torch)": \{(.*?)\}`).FindAllStringSubmatch(builders, -1) {
		known[m[1]] = m[2]
	}
	if len(known) != 3 {
		t.Fatalf("peer.py knows %d libraries", len(known))
	}
	for _, task := range tasks {
		for _, w := range task.wanted {
			of, python := known[w.peer]
			if kind := strings.Fields(task.name)[0]; python && !strings.Contains(of, fmt.Sprintf("%q:", kind)) {
				t.Errorf("%s does not know %s", w.peer, kind)
			}
		}
	}
}

// Python, if it is installed, answers each case, and "none" to an unknown one.
func TestPeerAnswers(t *testing.T) {
	binary := os.Getenv("BKB_PYTHON")
	if binary == "" {
		t.Skip("set BKB_PYTHON to a python3 with numpy and scipy, and with scikit-learn and torch for their cases")
	}
	p, err := startPython(binary, "peer.py", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	asked := make(map[string]bool)
	for _, task := range tasks {
		for _, w := range task.wanted {
			name := small(task.name)
			there := w.peer == "numpy" || w.peer == "sklearn" && strings.Contains(p.versions, "scikit-learn") || w.peer == "torch" && strings.Contains(p.versions, "torch")
			if !there || asked[w.peer+name] {
				continue
			}
			asked[w.peer+name] = true
			if _, _, ok := p.time(w.peer, name); !ok {
				t.Errorf("%s has no time for %s", w.peer, name)
			}
		}
	}
	if _, _, ok := p.time("numpy", "nonsense 64 1"); ok || p.ended {
		t.Error("it has a time for what is no case, or ended of it")
	}
	t.Logf("%s: %d cases", p.versions, len(asked))
}

// small returns a case of the same kind and precision that takes almost no time.
func small(name string) string {
	f := strings.Fields(name)
	small := []string{"12", "7", "3"}
	return strings.Join(append(f[:2:2], small[:sizes[f[0]]]...), " ")
}

// near checks that numbers agree to within a share of the largest.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	size, most := 0.0, 0.0
	for i, v := range want {
		size = max(size, math.Abs(v))
		if d := math.Abs(got[i] - v); !(d <= most) {
			most = d
		}
	}
	if !(most <= tolerance*size) {
		t.Errorf("%s: off by %g of %g", what, most, size)
	}
}

// ran returns the result of a case.
func ran(c comparison, f func()) []float64 {
	if c.prepare != nil {
		c.prepare()
	}
	f()
	return c.result()
}

// tolerances by precision.
var tolerances = map[string]float64{"32": 2e-5, "64": 1e-11}

// Ours and gonum return the result of plain loops, with the stated number of flops.
func TestAlgebra(t *testing.T) {
	for bits, tolerance := range tolerances {
		const m, n, k = 23, 17, 9
		c := build(fmt.Sprintf("gemm %s %d %d %d", bits, m, n, k), 1)
		a, b := rounded(bits, m*k), rounded(bits, k*n)
		want, flops := make([]float64, m*n), 0.0
		for i := range m {
			for j := range n {
				for l := range k {
					want[i*n+j] += a[i*k+l] * b[l*n+j]
					flops += 2
				}
			}
		}
		check(t, "gemm "+bits, c, want, flops, tolerance)

		g := rounded(bits, n*(n+10))
		spd := make([]float64, n*n)
		for i := range n {
			for j := range n {
				for l := range n + 10 {
					spd[i*n+j] += g[i*(n+10)+l] * g[j*(n+10)+l]
				}
			}
		}
		want = make([]float64, n*n)
		for i := range n {
			for j := range i + 1 {
				v := spd[i*n+j]
				for l := range j {
					v -= want[i*n+l] * want[j*n+l]
				}
				if i == j {
					want[i*n+i] = math.Sqrt(v)
				} else {
					want[i*n+j] = v / want[j*n+j]
				}
			}
		}
		check(t, "cholesky "+bits, build(fmt.Sprintf("cholesky %s %d", bits, n), 1), want, n*n*n/3., 10*tolerance)

		l, x := rounded(bits, n*n), rounded(bits, n*m)
		for i := range n {
			for j := range m {
				for p := range i {
					x[i*m+j] -= l[i*n+p] / math.Sqrt(n) * x[p*m+j]
				}
				x[i*m+j] /= 2
			}
		}
		check(t, "trsm "+bits, build(fmt.Sprintf("trsm %s %d %d", bits, n, m), 1), x, n*n*m, 10*tolerance)
	}
}

// rounded returns the normal numbers of a case, as it rounds them.
func rounded(bits string, n int) []float64 {
	if bits == "32" {
		return wide(normals[float32](n))
	}
	return normals[float64](n)
}

// check runs ours, and gonum if it is there.
func check(t *testing.T, what string, c comparison, want []float64, flops, tolerance float64) {
	t.Helper()
	if math.Abs(c.flops-flops) > 1e-9*flops {
		t.Errorf("%s: %g flops, want %g", what, c.flops, flops)
	}
	for range 2 { // the second run starts from the same data
		near(t, what, ran(c, c.ours), want, tolerance)
	}
	if strings.HasSuffix(what, " 64") != (c.gonum != nil) {
		t.Errorf("%s: gonum is there: %t", what, c.gonum != nil)
	}
	if c.gonum == nil {
		return
	}
	got := ran(c, c.gonum)
	if c.gonumResult != nil {
		got = c.gonumResult()
	}
	near(t, what+" of gonum", got, want, tolerance)
}

// Products with kernel matrices equal those of plain loops, for any number of workers to
// the bit.
func TestOperators(t *testing.T) {
	const n, m, d = 75, 20, 5
	gaussian := func(r2 float64) float64 { return math.Exp(-r2 / (2 * d)) }
	matern := func(r2 float64) float64 {
		r := math.Sqrt(5 * r2 / d)
		return (1 + r + r*r/3) * math.Exp(-r)
	}
	for bits, tolerance := range tolerances {
		for _, kind := range []struct {
			name    string
			columns int
			k       func(r2 float64) float64
		}{{"gram", 1, gaussian}, {"direct", 1, gaussian}, {"columns", rightHandSides, gaussian}, {"matern52", 1, matern}} {
			x, y, v := rounded(bits, n*d), rounded(bits, m*d), normals[float64](m*kind.columns)
			want := make([]float64, m*kind.columns)
			flops := 0.0
			for i := range n {
				row, u := make([]float64, m), make([]float64, kind.columns)
				for j := range m {
					r2 := 0.0
					for c := range d {
						r2 += (x[i*d+c] - y[j*d+c]) * (x[i*d+c] - y[j*d+c])
						flops += 2
					}
					row[j] = kind.k(r2)
					for c := range u {
						u[c] += row[j] * v[j*kind.columns+c]
						flops += 2
					}
				}
				for j := range m {
					for c := range u {
						want[j*kind.columns+c] += row[j] * u[c]
						flops += 2
					}
				}
			}
			name := fmt.Sprintf("%s %s %d %d %d", kind.name, bits, n, m, d)
			c := build(name, 2)
			if c.flops != flops {
				t.Errorf("%s: %g flops, want %g", name, c.flops, flops)
			}
			two, one := ran(c, c.ours), ran(c, c.one)
			near(t, name, two, want, 10*tolerance)
			if !slices.Equal(one, two) {
				t.Errorf("%s: one worker and two differ", name)
			}
		}
	}
}

// Random features are cosines whose products do not depend on the workers. In float32 they
// are the same kind of product.
func TestFeatures(t *testing.T) {
	c := build("features 64 75 20 5", 2)
	if two, one := ran(c, c.ours), ran(c, c.one); !slices.Equal(one, two) || slices.Max(one) <= 0 {
		t.Errorf("one worker %v, two %v", one, two)
	}
	const n, m, d = 75, 20, 5
	c = build("features 32 75 20 5", 1)
	x, y, phase, v := rounded("32", n*d), rounded("32", m*d), normals[float64](m), normals[float64](m)
	want := make([]float64, m)
	for i := range n {
		row, u := make([]float64, m), 0.0
		for j := range m {
			s := phase[j]
			for l := range d {
				s += x[i*d+l] * y[j*d+l]
			}
			row[j] = math.Cos(2 * math.Pi * s) // turns
			u += row[j] * v[j]
		}
		for j := range m {
			want[j] += row[j] * u
		}
	}
	near(t, "features 32", ran(c, c.ours), want, 2e-4)
}

// Functions equal those of package math for numbers in (−8, 0].
func TestElementwise(t *testing.T) {
	for bits, tolerance := range tolerances {
		for name, f := range map[string]func(float64) float64{"exp": math.Exp, "cos": func(x float64) float64 { return math.Cos(2 * math.Pi * x) }} {
			c := build(fmt.Sprintf("%s %s 100", name, bits), 1)
			got := ran(c, c.ours)
			want := rounded(bits, 100)
			for i, v := range want {
				_, frac := math.Modf(v)
				x := -8 * math.Abs(frac)
				if bits == "32" {
					x = float64(float32(x))
				}
				want[i] = f(x)
			}
			near(t, name+" "+bits, got, want, tolerance)
		}
	}
}

// Both sides compute scores of arms, with the flops of two triangular solutions.
func TestScore(t *testing.T) {
	for name, flops := range map[string]float64{"bkb 64 50 10 3": 2 * 50 * 10 * 10, "ucb 64 50 30 3": 2 * 50 * inducing * inducing} {
		c := build(name, 1)
		c.ours()
		c.gonum()
		if c.flops != flops {
			t.Errorf("%s: %g flops, want %g", name, c.flops, flops)
		}
	}
}
