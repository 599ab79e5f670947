// Strings that are no C identifiers.
Q(/lib)
