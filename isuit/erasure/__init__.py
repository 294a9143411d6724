"""A person's way out: finding every row, deciding, rewriting the store, the receipt, opt-outs and pseudonyms."""
