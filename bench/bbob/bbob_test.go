package bbob

import (
	"bufio"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// point returns a point of testdata/golden.py.
func point(p, d int) []float64 {
	x := make([]float64, d)
	for i := range x {
		k := i + 1
		x[i] = float64((7919*k+1297*(p+1)+31*k*k*(p+1))%10001)/1000 - 5
		if p == 3 {
			x[i] *= 1.25
		}
	}
	return x
}

// Values equal COCO's. With TestOptima it follows that f^opt does too.
func TestValuesAreCOCOs(t *testing.T) {
	file, err := os.Open("testdata/coco.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, worst := 0, 0.0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ",")
		function, err := strconv.Atoi(fields[0])
		if err != nil {
			continue // comment or header
		}
		var numbers []float64
		for _, text := range fields[1:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, v)
		}
		f, err := New(function, int(numbers[0]), int(numbers[1]))
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range numbers[2:] {
			got := f.Value(point(p, f.Dim()))
			off := math.Abs(got-want) / max(1, math.Abs(want))
			if worst = max(worst, off); !(off <= 1e-9) {
				t.Errorf("%v: value %v at point %d, COCO has %v", f, got, p, want)
			}
		}
		rows++
	}
	if err := lines.Err(); err != nil || rows != Functions*4*3 {
		t.Fatalf("%d rows: %v", rows, err)
	}
	t.Logf("largest relative difference %.2g", worst)
}

// The optimum has the least value and is in the box, and no point near or far is lower.
func TestOptima(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for function := 1; function <= Functions; function++ {
		for _, d := range []int{2, 3, 7, 40} {
			instance := 1 + rng.IntN(100)
			f, err := New(function, d, instance)
			if err != nil {
				t.Fatal(err)
			}
			opt := f.Optimum()
			if least := f.Above(opt); math.Abs(least) > 1e-8 || f.Value(opt) != least+f.Minimum() {
				t.Errorf("%v: %v above the minimum at the optimum", f, least)
			}
			x := make([]float64, d)
			for n := range 300 {
				size := math.Pow(10, -float64(n%8))
				for i, v := range opt {
					if math.Abs(v) > Bound {
						t.Fatalf("%v: optimum %v", f, opt)
					}
					x[i] = max(-Bound, min(Bound, v+size*rng.NormFloat64()))
				}
				if v := f.Above(x); v < -1e-9 || math.IsNaN(v) {
					t.Errorf("%v: %v above the minimum at %v", f, v, x)
				}
			}
		}
	}
}

// Rotations are orthogonal, and uniforms are uniform.
func TestRandom(t *testing.T) {
	for d := 2; d <= MaxDim; d += 9 {
		r := rotation(d, int64(17*d))
		x := normals(d, 3)
		back := r.backTimes(r.times(x))
		for i, v := range x {
			if math.Abs(v-back[i]) > 1e-12 {
				t.Errorf("d %d: coordinate %d is %v after a turn and back, was %v", d, i, back[i], v)
			}
		}
	}
	u, sum, square := uniforms(20000, 5), 0.0, 0.0
	for _, v := range u {
		if v <= 0 || v >= 1 {
			t.Fatalf("%v is not in (0, 1)", v)
		}
		sum, square = sum+v, square+v*v
	}
	n := float64(len(u))
	if math.Abs(sum/n-0.5) > 0.01 || math.Abs(square/n-1.0/3) > 0.01 {
		t.Errorf("mean %v, mean square %v", sum/n, square/n)
	}
	for _, seed := range []int64{0, 1, -1} { // all count as 1
		if uniforms(1, seed)[0] != uniforms(1, 1)[0] {
			t.Errorf("seed %d differs from 1", seed)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		function, dim, instance int
		field                   string
	}{{0, 2, 1, "function"}, {25, 2, 1, "function"}, {1, 1, 1, "dimension"}, {1, 41, 1, "dimension"}, {1, 2, 0, "instance"}} {
		var e *Error
		if f, err := New(c.function, c.dim, c.instance); !errors.As(err, &e) || e.Field != c.field || f != nil {
			t.Errorf("%+v: %v, %v", c, f, err)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	for _, function := range []int{1, 15, 16, 21, 23} {
		f, err := New(function, 10, 1)
		if err != nil {
			b.Fatal(err)
		}
		x := point(0, 10)
		b.Run(f.String(), func(b *testing.B) {
			for b.Loop() {
				f.Value(x)
			}
		})
	}
}
