package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

func ExampleOperator() {
	ctx := context.Background()
	x := kernel.NewPoints(4, 1, []float64{0, 1, 2, 3})
	src := kernel.FromRows(x)
	centers, err := kernel.Select(ctx, src, []int{0, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := kernel.NewGaussian(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err := kernel.NewOperator(k, src, centers, kernel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer op.Close()

	v := []float64{1, -1}
	kv := make([]float64, op.Rows())
	if err := op.Apply(ctx, kv, v); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", kv)
	// Output: [0.989 0.471 -0.471 -0.989]
}

// Your own kernel needs one function, of inputs of any type.
func ExamplePairwise() {
	k := &kernel.Pairwise[string]{
		Name: "common letters",
		Func: func(x, y string) float64 {
			var inX, both [256]bool
			for _, b := range []byte(x) {
				inX[b] = true
			}
			n := 0.0
			for _, b := range []byte(y) {
				if inX[b] && !both[b] {
					both[b] = true
					n++
				}
			}
			return n
		},
	}
	words := kernel.List[string]{"kernel", "colonel", "tuner"}
	fmt.Println(kernel.CheckPSD(k, words))
	fmt.Println(kernel.Gramian(k, words))
	// Output:
	// <nil>
	// [5 3 3 3 5 2 3 2 5] <nil>
}

func ExampleNew() {
	gaussian, _ := kernel.NewGaussian(0.5, 2)
	k, _ := kernel.NewScaled(2, gaussian)

	data, err := json.Marshal(k.Spec())
	if err != nil {
		fmt.Println(err)
		return
	}
	var spec kernel.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		fmt.Println(err)
		return
	}
	again, err := kernel.New(spec, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := kernel.NewPoints(2, 2, []float64{0, 1, 0.5, 1})
	fmt.Printf("%.4f %.4f\n", k.Eval(x, 0, x, 1), again.Eval(x, 0, x, 1))
	// Output: 1.2131 1.2131
}
