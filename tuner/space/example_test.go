package space_test

import (
	"fmt"
	"log"

	"github.com/bkbtuner/bkb/tuner/space"
)

// A space has parameters with a type, a range and a scale.
func ExampleNew() {
	sp, err := space.New(
		space.NewFloat("lr", 1e-5, 0.1).WithScale(space.Log),
		space.NewInt("width", 32, 256),
		space.NewBool("bias"),
	)
	if err != nil {
		log.Fatal(err)
	}
	c, err := sp.Decode([]float64{0.5, 0, 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sp.Dim(), c)
	// Output: 3 bias=true lr=0.001 width=32
}

// Parse reads the file of create-study. A parameter with "when" exists only for some
// values of another one.
func ExampleParse() {
	sp, _, err := space.Parse([]byte(`
parameters:
  optimizer: {type: categorical, values: [adam, sgd]}
  momentum: {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, u := range [][]float64{{0.25, 0.5}, {0.75, 0.5}} {
		c, err := sp.Decode(u)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c)
	}
	// Output:
	// optimizer=adam
	// momentum=0.495 optimizer=sgd
}
