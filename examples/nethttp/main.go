// This net/http server has one guarded handler, which admits three greetings a minute; the fourth is
// refused.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/{name}", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello,", r.PathValue("name"))
	})
	server := httptest.NewServer(nethttp.Handler(mux))
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
