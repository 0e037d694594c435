package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A store keeps the log of each study. Commit names the position that it expects, so that
// of two writers one is refused.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file, err := bolt.Open(filepath.Join(folder, "tuner.db"), bolt.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()

	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		log.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	ctx, now := context.Background(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	info, err := file.Create(ctx, "digits", []study.Event{{Time: now, Body: study.Created{Spec: spec}}})
	if err != nil {
		log.Fatal(err)
	}
	event := study.Event{Time: now, Body: study.Paused{}}
	if err := file.Commit(ctx, info.ID, info.Head, []study.Event{event}, nil); err != nil {
		log.Fatal(err)
	}
	var conflict *store.ConflictError
	err = file.Commit(ctx, info.ID, info.Head, []study.Event{event}, nil)
	fmt.Println(errors.As(err, &conflict))
	for record, err := range file.Read(ctx, info.ID, 1) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %T\n", record.Position, record.Event.Body)
	}
	// Output:
	// true
	// 1 study.Created
	// 2 study.Paused
}
