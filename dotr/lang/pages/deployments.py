"""Pages of D5xxx: deployments and what they keep.

Place:   read by explain.py. These codes come from other layers; their pages stand here with the rest.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D5001",
        "an output exists",
        "Nothing is overwritten unless asked for.",
        "dotr run fire.dotr events/ -o out.jsonl",
        "dotr run fire.dotr events/ -o out.jsonl --overwrite",
    ),
    _page(
        "D5002",
        "an output that is also read",
        "Rules, background and sources are never written over, and what a run writes is not read by it: "
        "`--overwrite` is about outputs of before. Links to a file are that file.",
        "dotr run fire.dotr log.nq -o log.nq --overwrite",
        "dotr run fire.dotr log.nq -o found.nq --overwrite",
    ),
    _page(
        "D5010",
        "the state of another version",
        "A detector's state is read by the version that wrote it.",
        "Engine(…, snapshot=old)",
        "a replay from the start",
    ),
    _page(
        "D5101",
        "a snapshot or cache of another version",
        "It is read by the version that wrote it.",
        "Engine(…, snapshot=old)",
        "a replay from the start",
    ),
    _page(
        "D5102",
        "not a snapshot",
        "Bytes that `Engine.snapshot()` returned, whole.",
        "Engine(…, snapshot=blob[:100])",
        "Engine(…, snapshot=blob)",
    ),
    _page(
        "D5201",
        "no deployment",
        "`dotr deploy` makes one.",
        "dotr feed events/ --dir nowhere",
        "dotr deploy fire.dotr --dir site; dotr feed events/ --dir site",
    ),
    _page(
        "D5202",
        "a damaged deployment",
        "Nothing was changed. Put a copy back, or deploy again and replay.",
        "dotr feed events/   # on a truncated deployment.db",
        "dotr deploy fire.dotr --dir again; dotr feed events/ --dir again",
    ),
    _page(
        "D5203",
        "a deployment of another format",
        "An older format is brought up to date by the first feed or deploy; a newer one is left alone.",
        "dotr feed events/   # with an older dotr than the one that deployed",
        "dotr feed events/   # with the dotr that deployed",
    ),
    _page(
        "D5204",
        "a deployment in use",
        "One process at a time feeds or changes a deployment.",
        "dotr feed a/ & dotr feed b/",
        "dotr feed a/ b/",
    ),
    _page(
        "D5206",
        "an output begun in another format",
        "A later feed goes on in the format of the file.",
        "dotr feed b/ -o out.jsonl --format nquads",
        "dotr feed b/ -o out.jsonl",
    ),
    _page(
        "D5207",
        "committed output is gone",
        "The file was cut or replaced behind the journal's back.",
        "rm out.jsonl; dotr feed b/ -o out.jsonl",
        "dotr feed b/ -o new.jsonl",
    ),
    _page(
        "D5208",
        "another unit of time",
        "A deployment counts integers in one unit.",
        "dotr feed events/ --time-unit ms",
        "dotr feed events/",
    ),
    _page(
        "D5209",
        "no such rule deployed",
        "`dotr status` lists them.",
        "dotr undeploy Fier",
        "dotr undeploy Fire",
    ),
    _page(
        "D5210",
        "a rule that others read",
        "Without its events they would silently stop.",
        "dotr undeploy Fire   # Evacuate reads it",
        "dotr undeploy Evacuate; dotr undeploy Fire",
    ),
    _page(
        "D5213",
        "an output with other bytes than were committed",
        "A feed goes on behind what it wrote: the end of the file must be what was committed last. This\n"
        "one was edited, or another file stands in its place.",
        "dotr feed s1.jsonl -o out.jsonl; sort -o out.jsonl out.jsonl; dotr feed s2.jsonl -o out.jsonl",
        "dotr feed s1.jsonl -o out.jsonl; sort out.jsonl > sorted.jsonl; dotr feed s2.jsonl -o out.jsonl",
    ),
)
