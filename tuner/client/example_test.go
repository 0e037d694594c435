package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Dial returns the service of a server, with the same methods as one in the process. This
// worker needs "tuner serve" on this machine and a study "digits" with the objective loss.
func ExampleDial() {
	ctx := context.Background()
	service, err := client.Dial("127.0.0.1:7070", client.Options{Plaintext: true})
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	asked, err := service.Ask(ctx, "digits", study.Ask{Count: 1, Worker: "node7"})
	if err != nil {
		log.Fatal(err)
	}
	trial := asked.Trials[0]
	loss := train(trial.Config.Number("lr"))
	told, err := service.Tell(ctx, "digits", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: study.Measured("loss", loss)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(told.Trial.Number, told.Trial.State)
}

func train(lr float64) float64 { return lr * lr }
