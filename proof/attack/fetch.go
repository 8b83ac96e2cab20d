package main

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/penstock-go/penstock/api"
)

// fetch gets a page of a guard. What is no success is an error.
func fetch(g *api.Guard, path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	w := &recorder{header: make(http.Header), status: http.StatusOK}
	g.Handler().ServeHTTP(w, req)
	if w.status != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %q", path, w.status, w.body.Bytes())
	}
	return w.body.Bytes(), nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header            { return w.header }
func (w *recorder) WriteHeader(status int)         { w.status = status }
func (w *recorder) Write(data []byte) (int, error) { return w.body.Write(data) }
