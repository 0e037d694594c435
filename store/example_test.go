package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Code on a [store.Store] works with every store. It finds a study by its name, and reads
// its log from the event after those that it has.
func ExampleStore() {
	follow := func(ctx context.Context, st store.Store, name string, after study.Position) (study.Position, error) {
		info, err := st.Lookup(ctx, name)
		if err != nil {
			return after, err
		}
		for record, err := range st.Read(ctx, info.ID, after+1) {
			if err != nil {
				return after, err
			}
			fmt.Printf("%d %T\n", record.Position, record.Event.Body)
			after = record.Position
		}
		return after, nil
	}

	st := memory.New()
	defer st.Close()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		log.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	ctx, now := context.Background(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	info, err := st.Create(ctx, "digits", []study.Event{{Time: now, Body: study.Created{Spec: spec}}})
	if err != nil {
		log.Fatal(err)
	}
	seen, err := follow(ctx, st, "digits", 0)
	if err != nil {
		log.Fatal(err)
	}
	events := []study.Event{{Time: now, Body: study.Paused{}}, {Time: now, Body: study.Resumed{}}}
	if err := st.Commit(ctx, info.ID, info.Head, events, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := follow(ctx, st, "digits", seen); err != nil {
		log.Fatal(err)
	}
	var missing *store.NotFoundError
	_, err = follow(ctx, st, "letters", 0)
	fmt.Println(errors.As(err, &missing))
	// Output:
	// 1 study.Created
	// 2 study.Paused
	// 3 study.Resumed
	// true
}
