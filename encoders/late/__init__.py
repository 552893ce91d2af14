"""Late interaction: token vectors out of the encoder's own run, their codes, and MaxSim over them.

The token states that are pooled into a text's vector are kept, less the tokens that say nothing, projected to fewer
dimensions and coded in a few bits each. A passage's score for a question is, over the question's tokens, the weighted
mean of the best cosine among the passage's tokens (Khattab and Zaharia, 2020). The passage side is a by-product of
indexing, so at query time it costs a look at some kilobytes a passage instead of a run of a model.
"""
