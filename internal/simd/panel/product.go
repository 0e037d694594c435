package panel

import "sync"

// taskRows is the least number of rows whose contribution to Kᵀt is summed
// before it is added to the rest. It is part of the order of summation.
const taskRows = 256

// Product has the memory of products w = Kᵀg(Kv) over all rows of X, by a fixed
// number of goroutines that share the rows. The order of summation does not
// depend on their number:
//
//	rows ── tasks of ≥ 256, in order ──► workers: blocks of K in L2
//	                                              t = K·v, g(t), part += Kᵀt
//	w ◄── parts added in the order of the tasks ──┘
type Product[T Float] struct {
	c       *Columns[T]
	v       Vectors[T]
	total   Sum[T]
	workers []*worker[T]

	mu   sync.Mutex
	turn sync.Cond
	next int // task to hand out
	done int // tasks added
}

type worker[T Float] struct {
	block *Block[T]
	part  Sum[T]
	t     []float64
}

// NewProduct returns the memory for a number of workers.
func NewProduct[T Float](c *Columns[T], workers int) *Product[T] {
	p := &Product[T]{c: c}
	p.turn.L = &p.mu
	for range max(1, workers) {
		p.workers = append(p.workers, &worker[T]{block: NewBlock(c, c.Height())})
	}
	return p
}

// Gram sets w = Kᵀg(K·v); v and w are row-major M×n. g changes in place the rows
// of K·v from row on; it is called concurrently, once for each row, and may be
// nil for the identity.
func Gram[T, S Float](p *Product[T], w []float64, x Rows[S], v []float64, n int, g func(row int, t []float64)) {
	x.check()
	p.v.Set(p.c, v, n)
	p.total.Reset(p.c, n)
	p.next, p.done = 0, 0
	if len(p.workers) == 1 {
		work(p, p.workers[0], x, g)
	} else {
		var wg sync.WaitGroup
		for _, k := range p.workers {
			wg.Go(func() { work(p, k, x, g) })
		}
		wg.Wait()
	}
	clear(w)
	p.total.AddTo(w)
}

// work takes tasks until there are none.
func work[T, S Float](p *Product[T], k *worker[T], x Rows[S], g func(row int, t []float64)) {
	height := k.block.max
	step := (taskRows + height - 1) / height * height
	if need := height * p.v.n; len(k.t) < need {
		k.t = make([]float64, need)
	}
	for {
		p.mu.Lock()
		task := p.next
		p.next++
		p.mu.Unlock()
		from, to := task*step, min(x.N, (task+1)*step)
		if from >= x.N {
			return
		}
		k.part.Reset(p.c, p.v.n)
		for i := from; i < to; i += height {
			end := min(i+height, to)
			t := k.t[:(end-i)*p.v.n]
			Evaluate(k.block, x, i, end, &p.v, t)
			if g != nil {
				g(i, t)
			}
			k.block.AddTransposed(&k.part, t)
		}
		p.mu.Lock()
		for p.done != task {
			p.turn.Wait()
		}
		p.total.Add(&k.part)
		p.done++
		p.turn.Broadcast()
		p.mu.Unlock()
	}
}
