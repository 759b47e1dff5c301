"""What editors need of the languages: TextMate grammars, generated from the vocabulary of the parsers."""
