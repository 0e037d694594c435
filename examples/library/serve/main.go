// Program serve is a server like tuner serve in a Go program. It stops itself after a look
// at its health.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
)

func main() {
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	at := make(chan string, 1)
	go func() {
		defer stop()
		c, err := client.Dial(<-at, client.Options{Plaintext: true})
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		fmt.Println(c.Healthy(ctx))
	}()
	err = serve.Run(ctx, serve.Config{
		File: filepath.Join(dir, "tuner.db"), HTTP: "127.0.0.1:0", Server: server.Options{Address: "127.0.0.1:0"},
		OnServing: func(r serve.Ready) { at <- r.GRPC },
	})
	if err != nil {
		log.Fatal(err)
	}
}
