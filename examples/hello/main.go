package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/observe/console"
)

func main() {
	ctx := context.Background()
	if err := api.WatchRules(ctx, "rules.yaml"); err != nil {
		log.Fatal(err)
	}
	go func() { log.Print(console.ListenAndServe(ctx, api.Default(), console.Config{})) }()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	log.Fatal(http.ListenAndServe("localhost:8080", nethttp.Handler(mux)))
}
