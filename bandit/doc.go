// Package bandit chooses inputs to evaluate by kernel bandits whose posteriors stay
// affordable: GP-UCB, BKB and BBKB, on finite arms. Package gp has the
// posteriors and package sketch the samplers.
//
// # The rule
//
// At step t an arm x_t is pulled and y_t = f(x_t) + noise is observed. The noise has
// variance λ = ξ², and f has norm ‖f‖ ≤ F in the space of the kernel. All policies pull the
// arm with the largest upper confidence bound μ̃(x) + b·σ̃(x), to keep the regret
// Σ_t f(x*) − f(x_t) small (Carratino 2020, (6.1) and (6.5)). Variances are in the squared
// units of y. σ̃²/λ is the leverage score, which the source calls σ² from (7.1) on.
//
//	symbol  meaning                                       where
//	ξ², λ   noise variance                                Config.NoiseVariance
//	b       β̃_t/√λ, Practical or Theory                   Config.Beta
//	q̄       inducing points per unit of score, 4          Sparsity.Oversampling
//	C       Σ σ̃²/λ between draws, 1                       Sparsity.Threshold
//	C̃       shrinking of variances within a batch, 2      Config.Ratio
//	m, u    inducing points, different inputs pulled      Decision.InducingPoints
//	d_eff   Σ_s σ̃²_t(x_s)/λ, effective dimension          Decision.EffectiveDimension
//	G_t     Σ_s log(1 + σ̃²_{s−1}(x_s)/λ)                  Decision.InformationGain
//
// # The policies and their costs, for A arms
//
//	NewGPUCB       exact, with m = u, O(uA) a step; best up to t ≈ 300
//	NewBKB         O(Am + m²) a step at most, and O((A + u)m²) where inducing points are
//	               drawn, some (d_eff + 4)·log t times; memory (A + u)m
//	  FromScratch  draws after every reward, Algorithm 5 as it is printed
//	NewBBKB        batches while 1 + Σ σ̃²_start(x_s)/λ ≤ C̃, in which the mean is frozen;
//	               O(m² + log A) for each of few arms, O((A + u)m²) a batch
//
// For policies on other spaces there are [Search], [Hypervolume], [LogImprovement], [FitQuadratic]
// and [Evolution] (CMA-ES with restarts). With
// [kernel.NewLinear] each policy is a linear bandit, and with kernel.List and kernel.Pairwise
// arms can be strings, graphs or configurations.
//
// # Late feedback and batches
//
// Pull says that an arm is being pulled. Variances shrink as if it had been observed, and means
// stay, unless a draw of inducing points is due. Pulls x_s shrink no variance by more than 1 + Σ
// σ²(x_s)/λ, so that Decision.MaxBatch pulls may go without feedback.
//
// # Departures from the sources
//
// They are Carratino (2020), chapters 6 and 7, after Calandriello et al. (2019), and Calandriello
// et al. (2020) for BBKB.
//
//   - Algorithm 5 never observes y_{t+1}, its p̃ must be at most 1, and its draw may be
//     empty, for which package sketch draws one point. Here it has the variances after the
//     last reward, with counts n_i, so that Σ n_iσ̃²/λ is d_eff.
//   - In Theorem 21 the root must end before F, and log(κ²t) must be 1 + log(κ²t/λ + 1).
//     Theory takes G_t instead, and the logarithm of the determinant once, where (7.5) has
//     it twice.
//   - For λ ≫ κ² the draws of §7.1.2 and the batches of BBKB would wait very long. Both also
//     come with a quarter more pulls (bench/docs/experiments.md, "Bandits of the library",
//     which also has times and regrets).
//
// # Invariants
//
//   - The configuration with its seed and the sequence of calls determine a policy to the
//     bit, for any number of workers. Of equal arms the lowest is chosen.
//   - Next and Best change nothing, and neither does a refused call.
//   - With C̃ = 1 BBKB is BKB from scratch, to the bit.
//   - Equal inputs are one point with a count, and arms must differ.
package bandit
