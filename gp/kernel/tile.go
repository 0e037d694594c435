package kernel

// These are the products of one tile of K with the right-hand sides, plain and in a
// fixed order of summation. All matrices are row-major. tile is rows×m, v and w are
// m×c, and t is rows×c.

// multiply sets t = tile·v.
func multiply(t, tile, v []float64, rows, m, c int) {
	for i := range rows {
		row := tile[i*m:][:m]
		if c == 1 {
			t[i] = dot(row, v)
			continue
		}
		out := t[i*c:][:c]
		clear(out)
		for j, k := range row {
			for q, x := range v[j*c:][:c] {
				out[q] += k * x
			}
		}
	}
}

// dot sums in four interleaved parts.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// addTransposed sets w += tileᵀ·t.
func addTransposed(w, tile, t []float64, rows, m, c int) {
	i := 0
	if c == 1 {
		for ; i+4 <= rows; i += 4 {
			addFour(w, tile[i*m:], t[i:i+4])
		}
	}
	for ; i < rows; i++ {
		row, in := tile[i*m:][:m], t[i*c:][:c]
		for j, k := range row {
			out := w[j*c:][:c]
			for q, x := range in {
				out[q] += k * x
			}
		}
	}
}

// addFour adds four rows of the tile, weighted by t, to w.
func addFour(w, tile, t []float64) {
	m := len(w)
	r0, r1, r2, r3 := four(tile, m)
	t0, t1, t2, t3 := t[0], t[1], t[2], t[3]
	for j := range w {
		w[j] += (t0*r0[j] + t1*r1[j]) + (t2*r2[j] + t3*r3[j])
	}
}
