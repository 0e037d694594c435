// Package bandit chooses inputs to evaluate by kernel bandits whose posteriors stay
// affordable. It has GP-UCB, BKB and BBKB, on finite arms and on boxes.
//
// Package gp has the posteriors and package sketch the samplers. This page says when to
// use which policy. The package does not depend on trials, files or clocks.
//
// # The problem and the rule
//
// At step t an arm x_t is pulled and y_t = f(x_t) + noise is observed. The noise has
// variance λ = ξ², and f has norm ‖f‖ ≤ F in the space of the kernel k. All policies
// pull the arm with the largest upper confidence bound
//
//	UCB(x) = μ̃(x) + b·σ̃(x),   LCB(x) = μ̃(x) − b·σ̃(x),
//
// to keep the regret R_T = Σ_t f(x*) − f(x_t) small (Carratino 2020, (6.1) and (6.5)).
// Variances are those of the process (6.4), in the squared units of y. σ̃²/λ is the
// leverage score, which the source calls σ² from (7.1) on, and b = β̃_t/√λ.
//
//	symbol  meaning                                       where
//	ξ², λ   noise variance                                Config.NoiseVariance
//	b       Practical √(0.15·d·log(2t + 1)), or Theory    Config.Beta
//	q̄       inducing points per unit of score, 4          Sparsity.Oversampling
//	C       Σ σ̃²/λ between draws, 1                       Sparsity.Threshold
//	C̃       shrinking of variances within a batch, 2      Config.Ratio
//	m       inducing points                               Decision.InducingPoints
//	d_eff   Σ_s σ̃²_t(x_s)/λ, effective dimension          Decision.EffectiveDimension
//	G_t     Σ_s log(1 + σ̃²_{s−1}(x_s)/λ)                  Decision.InformationGain
//
// # The policies
//
//	NewGPUCB       exact, with all inputs as inducing points, O(uA) a step; best up to
//	               t ≈ 300
//	NewBKB         rank-one update O(Am + m²) a step; every Σ σ̃²/λ > C the
//	               inducing points are drawn anew, O((A + u)m²)
//	  FromScratch  … after every reward: Algorithm 5 as it is printed
//	NewBBKB        batches while 1 + Σ σ̃²_start(x_s)/λ ≤ C̃; within, the mean is
//	               frozen and the arm found lazily, O(m²) for each of few arms
//	NewContinuous  BKB or exact GP-UCB on a box, by a Search
//
// [Search] maximises μ̃ + b·σ̃, or another score, over a box. NewContinuous uses it to
// find the next input. If your inputs are not all continuous, supply a [Domain], which
// moves points and makes them valid. The result is good but not certain, and Theorem 21
// needs the true maximum.
//
// On other spaces a policy is a list of [Source] values. For these there are [Hypervolume],
// [LogImprovement], [FitQuadratic] and [Evolution] (CMA-ES with restarts).
//
// With [kernel.NewLinear] each of them is a linear bandit. With kernel.List and
// kernel.Pairwise the arms can be strings, graphs or configurations.
//
//	     ┌────────────── Decision ──────────────┐
//	Next │                                      ▼
//	  posterior ◄── Observe(arm, y) ◄──── the world ────► Pull(arm): σ̃ shrinks
//	     ▲                                                Cancel(arm): as before
//	     └── inducing points ~ min(1, q̄ n_i σ̃²(x_i)/λ), keyed by (seed, step)
//
// # Feedback that is late, or comes in batches
//
// Pull says that an arm is being pulled. Variances shrink as if it had been observed,
// and means stay. BKB draws inducing points when they are due, also after a pull, and
// its means then change with the approximation. By the lemma behind BBKB, pulls x_s
// shrink no variance by more than 1 + Σ σ²(x_s)/λ, so that Decision.MaxBatch pulls may
// go without feedback. BKB does not limit batches and uses every reward at once, which
// is better if rewards come one by one. BBKB returns ErrBatchFull, and is the fastest.
//
// # Sources, and where we depart from them
//
// Carratino (2020), chapters 6 and 7, from Calandriello et al. (2019), Gaussian Process
// Optimization with Adaptive Sketching. BBKB is from Calandriello et al. (2020).
// bandit_paper_test.go checks the claims.
//
//   - Algorithm 5 never observes y_{t+1}. Its p̃ must be at most 1. Its draw may be
//     empty, and package sketch then draws one point.
//   - Algorithm 5 draws with the variances from before the last reward. Here they
//     are those from after it, with the counts n_i, so that Σ n_iσ̃²/λ is d_eff.
//   - In Theorem 21 the root must end before F, and log(κ²t) must be
//     1 + log(κ²t/λ + 1). Theory takes G_t instead. With exact variances that is
//     the log-determinant itself, and otherwise at least 1/α of it.
//   - (7.5) has the logarithm of the determinant twice what the source of
//     Proposition 19 has. Theory takes the source's.
//   - The incremental dictionary of §7.1.2 and the batches of BBKB wait for
//     Σ σ̃²/λ ≥ 1. For λ ≫ κ² that is very long, and they pull one arm in the
//     meantime. Here there is a draw, and a batch ends, whenever there are more
//     pulls by a quarter (bench/docs/experiments.md, "Bandits of the library").
//   - If a draw gives the same inducing points again, only the sum Σ σ̃²/λ starts
//     again, and the posterior stays as it is. With FromScratch it is computed.
//
// # Invariants
//
//   - The configuration with its seed and the sequence of calls determine a policy
//     to the bit. Next and Best change nothing. Of equal arms the lowest is chosen.
//     Numbers of workers change no bit.
//   - A refused call changes nothing, and its error names the argument and place.
//   - With all inputs as inducing points BKB is GP-UCB. With C̃ = 1 BBKB is BKB
//     from scratch, to the bit. The lazy search of BBKB finds the same arm as a
//     full search.
//   - Equal inputs are one point with a count, and arms must differ.
//   - Constant rewards need no special treatment.
//
// # Costs
//
// The symbols are A arms, u different inputs pulled, m inducing points and t steps.
//
//	GP-UCB      BKB with m = u
//	BKB         step O(Am + m²) at most, A/8 comparisons and O(m) for each arm that
//	            may be the best as a rule; O(Am² + um²) at some (d_eff + 4)·log t of the
//	            steps; memory (A + u)m
//	BBKB        O(m² + log A) for each refreshed arm, O((A + u)m²) a batch
//
// bench/docs/experiments.md has measured times and regrets ("Bandits of the library"). Where most
// arms compete, as on draws of a process in d = 6, bounds exclude few of them, and a step
// costs O(Am).
package bandit
