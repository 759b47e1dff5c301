"""What single rules of RDFS and OWL 2 RL entail: `given => expected`, or `given => name of the clash`."""

from __future__ import annotations


def cases(text: str) -> list[tuple[str, str]]:
    """Pairs of the lines; an indented line goes on with the one before."""
    lines = text.strip().replace("\n    ", " ").splitlines()
    return [(before.strip(), after.strip()) for before, after in (line.split("=>") for line in lines)]


RDFS_CASES = cases("""
:p rdfs:domain :C . :a :p :b => :a a :C
:p rdfs:range :C . :a :p :b => :b a :C
:p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r . :a :p :b
    => :a :q :b ; :r :b . :p rdfs:subPropertyOf :r
:C rdfs:subClassOf :D . :D rdfs:subClassOf :E . :a a :C => :a a :D, :E . :C rdfs:subClassOf :E
:C a rdfs:Class => :C rdfs:subClassOf :C, rdfs:Resource
:p a rdfs:ContainerMembershipProperty => :p rdfs:subPropertyOf rdfs:member
:d a rdfs:Datatype => :d rdfs:subClassOf rdfs:Literal
:a :p :b => :p a rdf:Property . :a a rdfs:Resource . :b a rdfs:Resource
:narrower rdfs:subPropertyOf rdfs:subClassOf . :C :narrower :D . :a a :C => :a a :D
""")

OWL_CASES = cases("""
:p a owl:FunctionalProperty . :a :p :b, :c => :b owl:sameAs :c . :c owl:sameAs :b
:p a owl:InverseFunctionalProperty . :a :p :c . :b :p :c . :a :q :d => :a owl:sameAs :b . :b :q :d
:a owl:sameAs :b . :b owl:sameAs :c => :c owl:sameAs :a
:p owl:sameAs :q . :a :p :b => :a :q :b
:p a owl:SymmetricProperty . :a :p :b => :b :p :a
:p a owl:TransitiveProperty . :a :p :b . :b :p :c . :c :p :d => :a :p :c, :d
:p owl:inverseOf :q . :a :p :b . :c :q :d => :b :q :a . :d :p :c
:p owl:equivalentProperty :q . :a :p :b . :c :q :d => :a :q :b . :c :p :d
:p owl:propertyChainAxiom (:q :r :s) . :a :q :b . :b :r :c . :c :s :d => :a :p :d
:C owl:hasKey (:p :q) . :a a :C ; :p 1 ; :q 2 . :b a :C ; :p 1 ; :q 2 => :a owl:sameAs :b
:C owl:intersectionOf (:D :E) . :a a :D, :E . :b a :C => :a a :C . :b a :D, :E . :C rdfs:subClassOf :D
:C owl:unionOf (:D :E) . :a a :D => :a a :C . :E rdfs:subClassOf :C
:C owl:oneOf (:a :b) => :a a :C . :b a :C
:C owl:someValuesFrom :D ; owl:onProperty :p . :a :p :b . :b a :D => :a a :C
:C owl:someValuesFrom owl:Thing ; owl:onProperty :p . :a :p :b => :a a :C
:C owl:allValuesFrom :D ; owl:onProperty :p . :a a :C ; :p :b => :b a :D
:C owl:hasValue 5 ; owl:onProperty :p . :a a :C . :b :p 5 => :a :p 5 . :b a :C
:C owl:maxCardinality 1 ; owl:onProperty :p . :a a :C ; :p :b, :c => :b owl:sameAs :c
:C owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass :D . :a a :C ; :p :b, :c .
    :b a :D . :c a :D
    => :b owl:sameAs :c
:C owl:equivalentClass :D . :a a :C . :b a :D => :a a :D . :b a :C . :C rdfs:subClassOf :D
:C a owl:Class . :a a :C => :a a owl:Thing . owl:Nothing rdfs:subClassOf :C
:p rdfs:domain :C . :C rdfs:subClassOf :D . :q rdfs:subPropertyOf :p
    => :p rdfs:domain :D . :q rdfs:domain :D
:C owl:someValuesFrom :E ; owl:onProperty :p . :D owl:someValuesFrom :F ; owl:onProperty :p .
    :E rdfs:subClassOf :F
    => :C rdfs:subClassOf :D
""")

CLASHES = cases("""
:C owl:disjointWith :D . :a a :C, :D => cax-dw
[] a owl:AllDisjointClasses ; owl:members (:C :D :E) . :a a :C, :E => cax-adc
:a owl:sameAs :b ; owl:differentFrom :b => eq-diff1
[] a owl:AllDifferent ; owl:distinctMembers (:a :b) . :a owl:sameAs :b => eq-diff2
:p a owl:IrreflexiveProperty . :a :p :a => prp-irp
:p a owl:AsymmetricProperty . :a :p :b . :b :p :a => prp-asyp
:p owl:propertyDisjointWith :q . :a :p :b ; :q :b => prp-pdw
[] a owl:AllDisjointProperties ; owl:members (:p :q) . :a :p :b ; :q :b => prp-adp
[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b . :a :p :b => prp-npa1
[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetValue 5 . :a :p 5 => prp-npa2
:a a owl:Nothing => cls-nothing2
:C owl:complementOf :D . :a a :C, :D => cls-com
:C owl:maxCardinality 0 ; owl:onProperty :p . :a a :C ; :p :b => cls-maxc1
:C owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass :D . :a a :C ; :p :b . :b a :D
    => cls-maxqc1
""")
