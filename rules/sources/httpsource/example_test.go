package httpsource_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/sources/httpsource"
)

func ExampleNew() {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, "flow: [{resource: GET /orders, threshold: 100}]")
	}))
	defer store.Close()

	source, err := httpsource.New(store.URL+"/orders/rules.yaml", httpsource.Config{
		Header: http.Header{"Authorization": {"Bearer secret"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	dir, _ := os.MkdirTemp("", "example") // in a program, a directory of its own
	defer os.RemoveAll(dir)
	err = guard.WatchSource(context.Background(), source, api.SourceOptions{Cache: filepath.Join(dir, "rules.cache")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(guard.Rules().Len(), guard.Status().OK, guard.Status().Sources[0].Revision)
	// Output:
	// 1 true "7"
}

// To change the rules, read them, and write their replacement. If another writer was faster,
// nothing is written.
func ExampleSource_Write() {
	text := "flow: [{resource: GET /orders, threshold: 100}]"
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("ETag", `"7"`)
			_, _ = io.WriteString(w, text)
		case r.Header.Get("If-Match") != `"7"`:
			w.WriteHeader(http.StatusPreconditionFailed)
		default:
			w.Header().Set("ETag", `"8"`)
		}
	}))
	defer store.Close()

	ctx := context.Background()
	source, _ := httpsource.New(store.URL+"/orders/rules.yaml", httpsource.Config{Name: "orders"})
	doc, _ := source.Next(ctx, "")
	set, _ := rules.Parse(source.Name(), doc.Data)
	set.Flow[0].Threshold = 200
	changed, _ := set.YAML()

	fmt.Println(source.Write(ctx, changed, doc.Revision))
	_, err := source.Write(ctx, changed, `"6"`)
	fmt.Println(err)
	// Output:
	// "8" <nil>
	// orders: the document has changed since it was read: status 412 Precondition Failed
}
