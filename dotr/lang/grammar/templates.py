"""DEFINE: the triples that a composite event consists of.

Place:   above windows.py; held by clauses.py.
Method:  language.md, sec. 2: Turtle's triples over constants, WITH variables and fresh names `dotr_x`. What
         Turtle would name at random (`[ ]`, `( )`, `_:b`) is refused: replay must give the same names again.
"""

from __future__ import annotations

from dotr.ir import Fresh, TemplateNode, TemplateTriple, TemplateVar
from dotr.lang.grammar.base import TYPE, Cursor, Skip
from dotr.lang.grammar.syntax import Name
from dotr.lang.grammar.tokens import Token
from dotr.lang.grammar.windows import WindowParser
from dotr.rdf.terms import is_iri, is_literal


class TemplateParser:
    """Reads templates; words and the ends of broken ones are read by `windows`."""

    def __init__(self, cursor: Cursor, windows: WindowParser) -> None:
        self.cursor = cursor
        self.windows = windows

    def template(self) -> tuple[tuple[TemplateTriple, ...], tuple[Name, ...], bool]:
        """`{ triples }`: the triples, the variables they name, and whether all could be read."""
        opened = self.cursor.at
        self.cursor.expect("{")
        found: list[TemplateTriple] = []
        names: list[Name] = []
        try:
            while not self.cursor.accept("}"):
                self._template_subject(found, names)
                if not self.cursor.accept(".") and self.cursor.key != "}":
                    raise self.cursor.fail("`.`, `;`, `,` or `}`")
        except Skip:
            self.windows.close(opened)
            return tuple(found), tuple(names), False
        return tuple(found), tuple(names), True

    def _template_subject(self, found: list[TemplateTriple], names: list[Name]) -> None:
        token = self.cursor.token
        subject = self._template_node(names)
        if isinstance(subject, str) and is_literal(subject):
            self.cursor.error("D1012", "a literal is never a subject", self.cursor.span(token))
        while True:
            verb_token = self.cursor.token
            predicate = self._template_verb(names)
            while True:
                object_ = self._template_node(names)
                found.append(TemplateTriple(subject, predicate, object_, self.cursor.since(verb_token)))
                if not self.cursor.accept(","):
                    break
            if not self.cursor.accept(";"):
                return
            while self.cursor.accept(";"):
                pass
            if self.cursor.key in (".", "}"):
                return

    def _template_verb(self, names: list[Name]) -> TemplateNode:
        token = self.cursor.token
        if token.key == "A" and token.text == "a":
            self.cursor.advance()
            return TYPE
        if token.kind == "name" and token.text.startswith("dotr_"):
            self.cursor.error(
                "D1012", "a fresh name is never a predicate", self.cursor.span(), hint="write an IRI"
            )
            self.cursor.advance()
            return TYPE
        if token.kind == "var" or self.cursor.at_iri():
            node = self._template_node(names)
            if isinstance(node, str) and not is_iri(node):
                self.cursor.error("D1012", "a predicate is an IRI", self.cursor.span(token))
            return node
        hint = ""
        if token.key in ("^", "!", "("):
            hint = "a template has no property paths"
        elif token.kind == "name":
            hint = f"write `:{token.text}`"
        raise self.cursor.fail("a predicate", hint)

    def _template_node(self, names: list[Name]) -> TemplateNode:
        token = self.cursor.token
        if token.kind == "var":
            name = self.windows.variable()
            names.append(name)
            return TemplateVar(name.text)
        if token.kind == "name" and token.key not in ("TRUE", "FALSE"):
            return self._fresh(token)
        if token.kind == "label" or token.key in ("[", "("):
            what = {"[": "`[ ]`", "(": "`( )`"}.get(token.key, f"`{token.text}`")
            self.cursor.error(
                "D1011",
                f"{what} has no name that replay would give again",
                self.cursor.span(),
                hint="use dotr_x",
                notes=("a fresh name `dotr_x` becomes an IRI made from what matched",),
            )
            raise Skip
        if token.kind in ("attribute", "timeof"):
            self.cursor.error("D1012", f"`{token.text}` is not allowed in a template", self.cursor.span(),
                       hint=f"bind it: WITH ?x := {token.text}, and write ?x")  # fmt: skip
            raise Skip
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        raise self.cursor.fail("a term, a WITH variable or a fresh name")

    def _fresh(self, token: Token) -> Fresh:
        if token.text.startswith("dotr_") and len(token.text) > 5:
            self.cursor.advance()
            return Fresh(token.text)
        hint = "a fresh name begins with dotr_ : `dotr_id1`"
        if token.text == "a":
            hint = "a subject is missing before `a`"
        elif not token.key.startswith("DOTR"):
            hint = f"write `?{token.text}`, `:{token.text}` or `dotr_{token.text}`"
        self.cursor.error("D1012", f"`{token.text}` is not a term", self.cursor.span(), hint=hint)
        raise Skip
