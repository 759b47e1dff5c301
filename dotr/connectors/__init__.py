"""What connects a deployment to others: a file a kind.

Place:   above service/, whose `Receiver` (cursors.py) and `Transport` (io/feeds.py) they are; below serve/ and
         cli/. Each imports what it needs when it is used.

webhook.py  events as signed posts (Standard Webhooks)
"""
