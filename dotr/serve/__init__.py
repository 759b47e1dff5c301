"""A deployment that listens: HTTP in, events out, and the answers of what was committed.

Place:   above service/, below cli/. Needs the extra `serve`, which only the files that speak HTTP import.

configuration.py      `dotr.yaml`, read with places; schema.json is made of its structs
security.py           tokens and their scopes, Host and Origin, limits of bodies
server.py             START HERE: what runs, and how it ends
engine.py             the thread that feeds, and what others ask of it
app.py                the routes, as a table
deliveries.py         outputs that are kept, and their connectors
subscriptions.py      sources that are brokers
connection_trials.py  whether what the configuration names can be had
replayed.py           sources that can be asked again, as a table
uris.py               a URI of a command line as the source or output of a configuration
feeding.py            the same sources and outputs for `dotr feed`
streaming.py          events to any number of readers
event_stream.py       events as a Linked Data Event Stream, by pages
answers.py            SPARQL, what holds, why and why not, watched queries, the plan, as bytes in a format
rule_trial.py         rules that are not in force, over what came lately
samples.py            rates and latencies of the last hour
static.py             the files of the console, which are in console/
metrics.py            counts for Prometheus
telemetry.py          the same counts, pushed by OTLP
"""
