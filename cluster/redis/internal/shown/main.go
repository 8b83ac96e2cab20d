package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/penstock-go/penstock/api"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	guard, err := api.New(api.Config{Stores: penstockredis.Stores()})
	if err != nil {
		log.Fatal(err)
	}
	api.SetDefault(guard)
	if err := api.WatchRules(ctx, "rules.yaml"); err != nil {
		log.Fatal(err)
	}

	http.HandleFunc("GET /orders", orders)
	server := &http.Server{Addr: "localhost:8080"}
	ended := make(chan error, 1)
	server.RegisterOnShutdown(func() { _ = guard.Drain(context.Background()) }) // the waiting calls are refused
	context.AfterFunc(ctx, func() { ended <- server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	err = errors.Join(<-ended, guard.Close()) // once the calls in flight have ended
	if err != nil {
		log.Fatal(err)
	}
}

func orders(w http.ResponseWriter, r *http.Request) {
	e, err := api.Entry(r.Context(), "GET /orders", api.Inbound())
	if err != nil {
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	defer e.Exit()
	fmt.Fprintln(w, "your orders")
}
