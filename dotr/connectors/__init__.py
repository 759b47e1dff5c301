"""What connects a deployment to others: a file a kind.

Place:   above service/, below serve/ and cli/; each is a `Receiver` (service/cursors.py) or a `Transport`
         (io/feeds.py), and imports what it needs when it is used.

mqtt.py     messages of MQTT in, events out
webhook.py  events as signed posts (Standard Webhooks)
"""
