// A consumer that handles at most five messages a second: the others wait.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	penstockwatermill "github.com/penstock-go/penstock/adapters/watermill"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	rule := flow.Rule{Resource: "message send-mail", Threshold: 5, Behavior: flow.TokenBucket} // a second
	if err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}); err != nil {
		log.Fatal(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	sent := make(chan string)
	router.AddMiddleware(penstockwatermill.Middleware())
	router.AddConsumerHandler("send-mail", "mails", broker, func(*message.Message) error {
		sent <- "sent a mail"
		return nil
	})
	go func() { log.Println(router.Run(context.Background())) }()
	for range 4 {
		_ = broker.Publish("mails", message.NewMessage(watermill.NewUUID(), nil))
		fmt.Println(<-sent)
	}
}
