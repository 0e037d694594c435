package bbob

import "math"

// uniforms returns n numbers in (0, 1) from the generator of BBOB-2009. That is Park and
// Miller's "minimal standard", x ↦ 16807·x mod 2³¹−1 by Schrage's method, with its output
// shuffled through 32 places (Bays-Durham).
func uniforms(n int, seed int64) []float64 {
	const modulus = 1<<31 - 1
	x := max(seed, -seed, 1)
	next := func() {
		// Schrage uses 2³¹−1 = 127773·16807 + 2836.
		if x = 16807*(x%127773) - 2836*(x/127773); x < 0 {
			x += modulus
		}
	}
	var places [32]int64
	for i := 39; i >= 0; i-- {
		next()
		if i < len(places) {
			places[i] = x
		}
	}
	last, out := places[0], make([]float64, n)
	for i := range out {
		next()
		at := last / 67108865 // division by 2²⁶+1 gives 0 … 31
		last, places[at] = places[at], x
		if out[i] = float64(last) / modulus; out[i] == 0 {
			out[i] = 1e-99
		}
	}
	return out
}

// normals returns n standard normals by Box and Muller, the cosines only.
func normals(n int, seed int64) []float64 {
	u := uniforms(2*n, seed)
	out := make([]float64, n)
	for i := range out {
		if out[i] = math.Sqrt(-2*math.Log(u[i])) * math.Cos(2*math.Pi*u[n+i]); out[i] == 0 {
			out[i] = 1e-99
		}
	}
	return out
}

// place returns an optimum, a point of a grid of 8e-4 in [−4, 4), never 0.
func place(d int, seed int64) []float64 {
	x := uniforms(d, seed)
	for i, u := range x {
		if x[i] = 8*math.Floor(1e4*u)/1e4 - 4; x[i] == 0 {
			x[i] = -1e-5
		}
	}
	return x
}

// minimum returns f^opt.
func minimum(function, instance int) float64 {
	seed := seedOf(function, instance)
	ratio := normals(1, seed)[0] / normals(1, seed+1)[0]
	return min(1000, max(-1000, math.Floor(1e4*ratio+0.5)/100))
}

// seedOf returns the seed of an instance. f4 and f18 share those of the functions
// they vary, f3 and f17.
func seedOf(function, instance int) int64 {
	switch function {
	case 4:
		function = 3
	case 18:
		function = 17
	}
	return int64(function) + 10000*int64(instance)
}
