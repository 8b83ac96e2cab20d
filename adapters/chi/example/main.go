// A server with chi: three greetings a minute, the fourth is refused.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/{name}", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	router := chi.NewRouter()
	router.Use(penstockchi.Middleware())
	router.Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello,", chi.URLParam(r, "name"))
	})
	server := httptest.NewServer(router)
	defer server.Close()
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		resp, err := server.Client().Get(server.URL + "/hello/" + name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name+":", resp.Status)
		resp.Body.Close()
	}
}
