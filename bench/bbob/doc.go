// Package bbob has the 24 noiseless functions of the black-box optimisation benchmark BBOB,
// to be minimized on [−5, 5]^d, d ≥ 2. The instances are those of the COCO platform, and
// values agree with COCO's to rounding.
//
//	f, err := bbob.New(8, 5, 1) // Rosenbrock, 5 inputs, instance 1
//	y := f.Value(x)             // y − f.Minimum() is the regret
//
// The source is Hansen, Finck, Ros and Auger, Real-parameter black-box optimization
// benchmarking 2009, noiseless functions definitions, INRIA RR-6829. Where that report and
// COCO differ, COCO is followed, because results are published with COCO:
//
//   - f4: every other coordinate of x^opt is made positive.
//   - f8, f9, f19: the scale is max(1, √d/8).
//   - f20: the optimum is known to ten digits only, so that the least value of the
//     formula is above f^opt by about 1e-13.
//   - f21, f22: the global peak is moved to 0.8 of its place towards the origin.
//
// # Transformations
//
// All work on vectors, with i counted from 0 (RR-6829, section 0.2):
//
//   - T_osz: x ↦ sign(x)·exp(x̂ + 0.049(sin c₁x̂ + sin c₂x̂)), x̂ = log|x|, with c₁, c₂ =
//     10, 7.9 where x > 0 and 5.5, 3.1 elsewhere: makes a smooth function irregular.
//   - T_asy^β: x_i ↦ x_i^(1 + β·i/(d−1)·√x_i) where x_i > 0: breaks symmetry.
//   - Λ^α: the diagonal matrix of α^(½·i/(d−1)).
//   - f_pen(x) = Σ max(0, |x_i| − 5)²: keeps optimisers without bounds in the box.
//   - Q, R: rotations by Gram-Schmidt of normal matrices.
//
// # Instances
//
// Optima and rotations come from the generator of BBOB-2009, a shuffled Park-Miller
// sequence, seeded with function + 10000·instance. The value f^opt is a ratio of two
// normals cut to [−1000, 1000] and rounded to hundredths.
//
// # Invariants and costs
//
// A Function is immutable and safe for concurrent use. A value costs O(d²), and O(d·(d +
// peaks)) for f21 and f22, which is 0.1 to 10 µs for d = 10.
package bbob
