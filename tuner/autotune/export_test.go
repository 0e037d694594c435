package autotune

// LearnedKernels returns the kernels with which length scales were learned.
func LearnedKernels(t *Tuning) (euclidean, laplace string) {
	if l := t.problem.Learned; l != nil {
		euclidean = l.Kernel
	}
	if l := t.problem.Laplace; l != nil {
		laplace = l.Kernel
	}
	return euclidean, laplace
}
