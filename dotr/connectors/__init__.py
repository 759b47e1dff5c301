"""What connects a deployment to others: a file a kind.

Place:   above service/, below serve/ and cli/; each is a `Receiver` (service/cursors.py) or a `Transport`
         (io/feeds.py), and imports what it needs when it is used.

bound_values.py  values of variables in names of topics, keys and bodies
kafka.py         topics of Kafka in, events out in transactions
ldes.py          Linked Data Event Streams in
mqtt.py          messages of MQTT in, events out
mqtt_session.py  a connection to a broker that receives many messages at a time
outgoing.py      requests over HTTP to hosts of the configuration
read_ahead.py    a thread that reads a source for the feed
upstream.py      events of another deployment in
webhook.py       events as signed posts (Standard Webhooks)
"""
