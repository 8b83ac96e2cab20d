package bandwidth_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bandwidth"
	"github.com/penstock-go/penstock/flow"
)

// A handler behind an adapter finds its call in the context of the request.
func Example() {
	download := func(w http.ResponseWriter, r *http.Request, file io.Reader) error {
		ctx := r.Context()
		w = bandwidth.ResponseWriter(ctx, w, api.FromContext(ctx))
		_, err := io.Copy(w, file)
		return err
	}

	guard, err := api.New(api.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{Resource: "GET /file", Unit: "bytes", Threshold: 10e6, Behavior: flow.Throttle},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest(http.MethodGet, "/file", nil)
	e, err := guard.Entry(request.Context(), "GET /file") // an adapter does this
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.ExitOn(&err)
	response := httptest.NewRecorder()
	err = download(response, request.WithContext(e.Context()), strings.NewReader(strings.Repeat("x", 50_000)))
	fmt.Println(response.Body.Len(), err, guard.UnitStats("GET /file")[0].Total.Reserved)
	// Output: 50000 <nil> 50000
}
