// This program makes a call with limits and a breaker from Penstock, and with retries, a timeout and a
// fallback from failsafe-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

func main() {
	err := api.LoadRules(api.RuleSet{Breaker: []breaker.Rule{{
		ID: "prices", Resource: "prices", Strategy: breaker.ConsecutiveErrors, Threshold: 5, Recovery: time.Minute,
	}}})
	if err != nil {
		log.Fatal(err)
	}

	ask := &service{}
	price := guarded(ask.price)
	for _, down := range []int{0, 2, 100, 100} { // number of failing attempts
		ask.attempts, ask.down = 0, down
		answer, err := price(context.Background())
		fmt.Printf("%d attempts: %s, %v\n", ask.attempts, answer, err)
	}
}

// guarded adds the parts that Penstock doesn't have. Each attempt is a separate call, so retries
// count against limits, and the breaker sees every failure. The last policy is the innermost.
func guarded(ask func(context.Context) (string, error)) func(context.Context) (string, error) {
	executor := failsafe.With(
		fallback.NewWithResult("yesterday's price"),
		retrypolicy.NewBuilder[string]().
			AbortOnErrors(api.ErrBlocked). // don't retry a refused call at once
			WithMaxRetries(3).WithBackoff(time.Millisecond, 10*time.Millisecond).
			Build(),
	)
	return func(ctx context.Context) (string, error) {
		return executor.WithContext(ctx).GetWithExecution(func(x failsafe.Execution[string]) (string, error) {
			return api.Call(x.Context(), "prices", func(ctx context.Context) (string, error) {
				// Inside the call: context.DeadlineExceeded is a failure to the breaker. A timeout
				// of failsafe-go around the call cancels the context, and context.Canceled is not a
				// failure.
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return ask(ctx)
			})
		})
	}
}

// service represents a remote service.
type service struct{ attempts, down int }

func (s *service) price(context.Context) (string, error) {
	s.attempts++
	if s.attempts <= s.down {
		return "", errors.New("503 Service Unavailable")
	}
	return "12.99", nil
}
