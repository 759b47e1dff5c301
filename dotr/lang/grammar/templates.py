"""DEFINE: the triples that a composite event consists of.

Place:   between windows.py and clauses.py.
Method:  language.md, sec. 2: Turtle's triples over constants, WITH variables and fresh names `dotr_x`. What
         Turtle would name at random (`[ ]`, `( )`, `_:b`) is refused: replay must give the same names again.
"""

from __future__ import annotations

from dotr.ir import Fresh, TemplateNode, TemplateTriple, TemplateVar
from dotr.lang.grammar.base import TYPE, Skip
from dotr.lang.grammar.syntax import Name
from dotr.lang.grammar.tokens import Token
from dotr.lang.grammar.windows import WindowParser
from dotr.rdf.terms import is_iri, is_literal


class TemplateParser(WindowParser):
    """Adds templates to what windows.py reads."""

    def template(self) -> tuple[tuple[TemplateTriple, ...], tuple[Name, ...], bool]:
        """`{ triples }`: the triples, the variables they name, and whether all could be read."""
        opened = self.at
        self.expect("{")
        found: list[TemplateTriple] = []
        names: list[Name] = []
        try:
            while not self.accept("}"):
                self._template_subject(found, names)
                if not self.accept(".") and self.key != "}":
                    raise self.fail("`.`, `;`, `,` or `}`")
        except Skip:
            self.close(opened)
            return tuple(found), tuple(names), False
        return tuple(found), tuple(names), True

    def _template_subject(self, found: list[TemplateTriple], names: list[Name]) -> None:
        token = self.token
        subject = self._template_node(names)
        if isinstance(subject, str) and is_literal(subject):
            self.error("D1012", "a literal is never a subject", self.span(token))
        while True:
            verb_token = self.token
            predicate = self._template_verb(names)
            while True:
                object_ = self._template_node(names)
                found.append(TemplateTriple(subject, predicate, object_, self.since(verb_token)))
                if not self.accept(","):
                    break
            if not self.accept(";"):
                return
            while self.accept(";"):
                pass
            if self.key in (".", "}"):
                return

    def _template_verb(self, names: list[Name]) -> TemplateNode:
        token = self.token
        if token.key == "A" and token.text == "a":
            self.advance()
            return TYPE
        if token.kind == "name" and token.text.startswith("dotr_"):
            self.error("D1012", "a fresh name is never a predicate", self.span(), hint="write an IRI")
            self.advance()
            return TYPE
        if token.kind == "var" or self.at_iri():
            node = self._template_node(names)
            if isinstance(node, str) and not is_iri(node):
                self.error("D1012", "a predicate is an IRI", self.span(token))
            return node
        hint = ""
        if token.key in ("^", "!", "("):
            hint = "a template has no property paths"
        elif token.kind == "name":
            hint = f"write `:{token.text}`"
        raise self.fail("a predicate", hint)

    def _template_node(self, names: list[Name]) -> TemplateNode:
        token = self.token
        if token.kind == "var":
            name = self.variable_here()
            names.append(name)
            return TemplateVar(name.text)
        if token.kind == "name" and token.key not in ("TRUE", "FALSE"):
            return self._fresh(token)
        if token.kind == "label" or token.key in ("[", "("):
            what = {"[": "`[ ]`", "(": "`( )`"}.get(token.key, f"`{token.text}`")
            self.error(
                "D1011",
                f"{what} has no name that replay would give again",
                self.span(),
                hint="use dotr_x",
                notes=("a fresh name `dotr_x` becomes an IRI made from what matched",),
            )
            raise Skip
        if token.kind in ("attribute", "timeof"):
            self.error("D1012", f"`{token.text}` stands in a template", self.span(),
                       hint=f"bind it: WITH ?x := {token.text}, and write ?x")  # fmt: skip
            raise Skip
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_literal():
            return self.literal_term()
        raise self.fail("a term, a WITH variable or a fresh name")

    def _fresh(self, token: Token) -> Fresh:
        if token.text.startswith("dotr_") and len(token.text) > 5:
            self.advance()
            return Fresh(token.text)
        hint = "a fresh name begins with dotr_ : `dotr_id1`"
        if token.text == "a":
            hint = "a subject is missing before `a`"
        elif not token.key.startswith("DOTR"):
            hint = f"write `?{token.text}`, `:{token.text}` or `dotr_{token.text}`"
        self.error("D1012", f"`{token.text}` is not a term", self.span(), hint=hint)
        raise Skip
