"""Every rule of OWL 2 Profiles, section 4.3, tables 4 to 9, as the smallest premises and their conclusion.

Place:   beside test_owl2rl.py, which holds the page `owl2rl` of the manual against what runs.
Method:  name → (premises, conclusion), in Turtle; the conclusion "" is a contradiction.
"""

from __future__ import annotations

from typing import Final

XSD = "http://www.w3.org/2001/XMLSchema#"
ZERO, ONE = f'"0"^^<{XSD}nonNegativeInteger>', f'"1"^^<{XSD}nonNegativeInteger>'
_MAXC = ":C owl:onProperty :p ; owl:maxCardinality"
_NPA = "[ owl:sourceIndividual :a ; owl:assertionProperty :p ;"
_SVF = ":C owl:someValuesFrom :E ; owl:onProperty"
_MAXQC = ":C owl:onProperty :p ; owl:maxQualifiedCardinality"

CASES: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Table 4: equality": {
        "eq-ref": (":a :p :b .", ":a owl:sameAs :a"),
        "eq-sym": (":a owl:sameAs :b .", ":b owl:sameAs :a"),
        "eq-trans": (":a owl:sameAs :b . :b owl:sameAs :c .", ":a owl:sameAs :c"),
        "eq-rep-s": (":a owl:sameAs :b . :a :p :o .", ":b :p :o"),
        "eq-rep-p": (":p owl:sameAs :q . :a :p :o .", ":a :q :o"),
        "eq-rep-o": (":a owl:sameAs :b . :s :p :a .", ":s :p :b"),
        "eq-diff1": (":a owl:sameAs :b ; owl:differentFrom :b .", ""),
        "eq-diff2": ("[ a owl:AllDifferent ; owl:members ( :a :b ) ] . :a owl:sameAs :b .", ""),
        "eq-diff3": ("[ a owl:AllDifferent ; owl:distinctMembers ( :a :b ) ] . :a owl:sameAs :b .", ""),
    },
    "Table 5: axioms about properties": {
        "prp-ap": ("", "rdfs:label a owl:AnnotationProperty"),
        "prp-dom": (":p rdfs:domain :C . :a :p :b .", ":a a :C"),
        "prp-rng": (":p rdfs:range :C . :a :p :b .", ":b a :C"),
        "prp-fp": (":p a owl:FunctionalProperty . :a :p :b, :c .", ":b owl:sameAs :c"),
        "prp-ifp": (":p a owl:InverseFunctionalProperty . :a :p :c . :b :p :c .", ":a owl:sameAs :b"),
        "prp-irp": (":p a owl:IrreflexiveProperty . :a :p :a .", ""),
        "prp-symp": (":p a owl:SymmetricProperty . :a :p :b .", ":b :p :a"),
        "prp-asyp": (":p a owl:AsymmetricProperty . :a :p :b . :b :p :a .", ""),
        "prp-trp": (":p a owl:TransitiveProperty . :a :p :b . :b :p :c .", ":a :p :c"),
        "prp-spo1": (":p rdfs:subPropertyOf :q . :a :p :b .", ":a :q :b"),
        "prp-spo2": (":p owl:propertyChainAxiom ( :q :r ) . :a :q :b . :b :r :c .", ":a :p :c"),
        "prp-eqp1": (":p owl:equivalentProperty :q . :a :p :b .", ":a :q :b"),
        "prp-eqp2": (":p owl:equivalentProperty :q . :a :q :b .", ":a :p :b"),
        "prp-pdw": (":p owl:propertyDisjointWith :q . :a :p :b ; :q :b .", ""),
        "prp-adp": ("[ a owl:AllDisjointProperties ; owl:members ( :p :q ) ] . :a :p :b ; :q :b .", ""),
        "prp-inv1": (":p owl:inverseOf :q . :a :p :b .", ":b :q :a"),
        "prp-inv2": (":p owl:inverseOf :q . :a :q :b .", ":b :p :a"),
        "prp-key": (":C owl:hasKey ( :p ) . :a a :C ; :p 1 . :b a :C ; :p 1 .", ":a owl:sameAs :b"),
        "prp-npa1": (
            "[ owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b ] . :a :p :b .",
            "",
        ),
        "prp-npa2": (f"{_NPA} owl:targetValue 1 ] . :a :p 1 .", ""),
    },
    "Table 6: classes": {
        "cls-thing": ("", "owl:Thing a owl:Class"),
        "cls-nothing1": ("", "owl:Nothing a owl:Class"),
        "cls-nothing2": (":a a owl:Nothing .", ""),
        "cls-int1": (":C owl:intersectionOf ( :D :E ) . :a a :D, :E .", ":a a :C"),
        "cls-int2": (":C owl:intersectionOf ( :D :E ) . :a a :C .", ":a a :E"),
        "cls-uni": (":C owl:unionOf ( :D :E ) . :a a :E .", ":a a :C"),
        "cls-com": (":C owl:complementOf :D . :a a :C, :D .", ""),
        "cls-svf1": (":C owl:someValuesFrom :D ; owl:onProperty :p . :a :p :b . :b a :D .", ":a a :C"),
        "cls-svf2": (":C owl:someValuesFrom owl:Thing ; owl:onProperty :p . :a :p :b .", ":a a :C"),
        "cls-avf": (":C owl:allValuesFrom :D ; owl:onProperty :p . :a a :C ; :p :b .", ":b a :D"),
        "cls-hv1": (":C owl:hasValue :v ; owl:onProperty :p . :a a :C .", ":a :p :v"),
        "cls-hv2": (":C owl:hasValue :v ; owl:onProperty :p . :a :p :v .", ":a a :C"),
        "cls-maxc1": (f"{_MAXC} {ZERO} . :a a :C ; :p :b .", ""),
        "cls-maxc2": (f"{_MAXC} {ONE} . :a a :C ; :p :b, :c .", ":b owl:sameAs :c"),
        "cls-maxqc1": (f"{_MAXQC} {ZERO} ; owl:onClass :D . :a a :C ; :p :b . :b a :D .", ""),
        "cls-maxqc2": (f"{_MAXQC} {ZERO} ; owl:onClass owl:Thing . :a a :C ; :p :b .", ""),
        "cls-maxqc3": (
            f"{_MAXQC} {ONE} ; owl:onClass :D . :a a :C ; :p :b, :c . :b a :D . :c a :D .",
            ":b owl:sameAs :c",
        ),
        "cls-maxqc4": (f"{_MAXQC} {ONE} ; owl:onClass owl:Thing . :a a :C ; :p :b, :c .", ":b owl:sameAs :c"),
        "cls-oo": (":C owl:oneOf ( :a :b ) .", ":b a :C"),
    },
    "Table 7: axioms about classes": {
        "cax-sco": (":C rdfs:subClassOf :D . :a a :C .", ":a a :D"),
        "cax-eqc1": (":C owl:equivalentClass :D . :a a :C .", ":a a :D"),
        "cax-eqc2": (":C owl:equivalentClass :D . :a a :D .", ":a a :C"),
        "cax-dw": (":C owl:disjointWith :D . :a a :C, :D .", ""),
        "cax-adc": ("[ a owl:AllDisjointClasses ; owl:members ( :C :D ) ] . :a a :C, :D .", ""),
    },
    "Table 8: datatypes": {
        "dt-type1": ("", f"<{XSD}integer> a rdfs:Datatype"),
        "dt-type2": (":a :p 1 .", f"1 a <{XSD}integer>"),
        "dt-eq": (f':a :p 1, "01"^^<{XSD}integer> .', f'1 owl:sameAs "01"^^<{XSD}integer>'),
        "dt-diff": (":p a owl:FunctionalProperty . :a :p 1, 2 .", ""),
        "dt-not-type": (f':a :p "one"^^<{XSD}integer> .', ""),
    },
    "Table 9: the schema vocabulary": {
        "scm-cls": (":C a owl:Class .", ":C rdfs:subClassOf owl:Thing"),
        "scm-sco": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :E .", ":C rdfs:subClassOf :E"),
        "scm-eqc1": (":C owl:equivalentClass :D .", ":D rdfs:subClassOf :C"),
        "scm-eqc2": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :C .", ":C owl:equivalentClass :D"),
        "scm-op": (":p a owl:ObjectProperty .", ":p rdfs:subPropertyOf :p"),
        "scm-dp": (":p a owl:DatatypeProperty .", ":p owl:equivalentProperty :p"),
        "scm-spo": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", ":p rdfs:subPropertyOf :r"),
        "scm-eqp1": (":p owl:equivalentProperty :q .", ":q rdfs:subPropertyOf :p"),
        "scm-eqp2": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", ":p owl:equivalentProperty :q"),
        "scm-dom1": (":p rdfs:domain :C . :C rdfs:subClassOf :D .", ":p rdfs:domain :D"),
        "scm-dom2": (":q rdfs:domain :C . :p rdfs:subPropertyOf :q .", ":p rdfs:domain :C"),
        "scm-rng1": (":p rdfs:range :C . :C rdfs:subClassOf :D .", ":p rdfs:range :D"),
        "scm-rng2": (":q rdfs:range :C . :p rdfs:subPropertyOf :q .", ":p rdfs:range :C"),
        "scm-hv": (
            (
                ":C owl:hasValue :i ; owl:onProperty :p . :D owl:hasValue :i ; owl:onProperty :q ."
                " :p rdfs:subPropertyOf :q ."
            ),
            ":C rdfs:subClassOf :D",
        ),
        "scm-svf1": (
            (f"{_SVF} :p . :D owl:someValuesFrom :F ; owl:onProperty :p . :E rdfs:subClassOf :F ."),
            ":C rdfs:subClassOf :D",
        ),
        "scm-svf2": (
            (f"{_SVF} :p . :D owl:someValuesFrom :E ; owl:onProperty :q . :p rdfs:subPropertyOf :q ."),
            ":C rdfs:subClassOf :D",
        ),
        "scm-avf1": (
            (
                ":C owl:allValuesFrom :E ; owl:onProperty :p . :D owl:allValuesFrom :F ; owl:onProperty :p ."
                " :E rdfs:subClassOf :F ."
            ),
            ":C rdfs:subClassOf :D",
        ),
        "scm-avf2": (
            (
                ":C owl:allValuesFrom :E ; owl:onProperty :p . :D owl:allValuesFrom :E ; owl:onProperty :q ."
                " :p rdfs:subPropertyOf :q ."
            ),
            ":D rdfs:subClassOf :C",
        ),
        "scm-int": (":C owl:intersectionOf ( :D :E ) .", ":C rdfs:subClassOf :E"),
        "scm-uni": (":C owl:unionOf ( :D :E ) .", ":D rdfs:subClassOf :C"),
    },
}
