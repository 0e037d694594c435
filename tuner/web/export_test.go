package web

import (
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
)

// Impatient shortens the time without a line in a stream, and that for a piece of an
// answer.
func Impatient(silence, writing time.Duration) func(*Face) {
	return func(f *Face) { f.silence, f.writeTimeout = silence, writing }
}

// Panicking answers all requests with some text, if any, and then a panic.
func Panicking(text string, value any) func(*Face) {
	return func(f *Face) {
		f.http.Handler = f.recovered(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if text != "" {
				_, _ = io.WriteString(w, text)
			}
			panic(value)
		}))
	}
}

// HTTPStatus is the table of statuses.
func HTTPStatus() map[codes.Code]int { return httpStatus }

// WithKey gives a face a key.
func WithKey(key string) func(*Face) { return func(f *Face) { f.key = key } }

// WithoutPage takes the page from a face.
func WithoutPage(f *Face) {
	f.page = nil
	routes, err := f.routes()
	if err != nil {
		panic(err)
	}
	f.http.Handler = routes
}

// Connect sets the flags that commands on the page have.
func Connect(f *Face, flags string) error {
	p, err := newPage(flags)
	if err == nil {
		f.page.index = p.index
	}
	return err
}
