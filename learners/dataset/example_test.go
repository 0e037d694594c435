package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Read a file, fit the encoding on a part of it and encode all of it.
func Example() {
	ctx := context.Background()
	table, err := dataset.Open(ctx, dataset.Options{Target: []string{"species"}}, "testdata/flowers.csv")
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	parts, err := data.Split(table.Len(), nil, 3, 0.75, 0.25)
	if err != nil {
		log.Fatal(err)
	}
	encoding, err := table.FitEncoding(ctx, parts[0], data.EncodingOptions{
		Missing: data.FillMedian, Unknown: data.UnknownZero,
	})
	if err != nil {
		log.Fatal(err)
	}
	all, err := table.Encode(ctx, encoding)
	if err != nil {
		log.Fatal(err)
	}
	train, err := data.Subset(all, parts[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Len(), "rows of", encoding.InputNames())
	fmt.Println(encoding.Task, encoding.Classes)
	// Output:
	// 3 rows of [length width colour=blue colour=red colour=white]
	// classification [setosa virginica]
}
