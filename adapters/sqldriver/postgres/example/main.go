// A program that sends PostgreSQL at most two queries a minute: the third is refused.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/penstock-go/penstock/adapters/sqldriver"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	rule := flow.Rule{Resource: "sql orders", Threshold: 2, Interval: time.Minute}
	if err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}); err != nil {
		log.Fatal(err)
	}
	db, err := sqldriver.Open("pgx", os.Getenv("DATABASE_URL"), "orders") // instead of sql.Open("pgx", ...)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for n := range 3 {
		fmt.Println(ask(db, n))
	}
}

func ask(db *sql.DB, n int) string {
	var answer string
	if err := db.QueryRow("SELECT 'answer ' || $1::int", n).Scan(&answer); errors.Is(err, api.ErrBlocked) {
		return "refused"
	}
	return answer
}
